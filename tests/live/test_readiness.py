"""What a proxy asks before it sends anybody here: no while the database is away or behind, yes soon after its return."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from service.storage.migrate import head
from testing.databases import migrate_now
from testing.json_client import JsonClient, arms
from testing.postgres import Postgres
from testing.processes import wait_until
from testing.server import NO_CERTIFICATES, Server

pytestmark = [pytest.mark.process, pytest.mark.serial]
_BACK_SECONDS = 5.0
_DATABASE = "ready"


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    """A cluster that goes away and comes back."""
    with Postgres() as cluster:
        cluster.sql(f"CREATE DATABASE {_DATABASE}")
        migrate_now(cluster.url(_DATABASE))
        yield cluster


@pytest.fixture(scope="module")
def served(own_postgres: Postgres) -> Iterator[Server]:
    """A service of two workers on it, whose probes reach either."""
    with Server(own_postgres.url(_DATABASE), workers=2, BESTARM_LOG_LEVEL="error") as running:
        yield running


def _readiness(server: Server) -> tuple[int, str | None]:
    """Asked on a connection of its own, as probes do."""
    answer = httpx.get(f"{server.url}/readyz", timeout=30, verify=NO_CERTIFICATES)
    return answer.status_code, answer.json().get("code")


def _break_database(cluster: Postgres) -> None:
    cluster.stop()


def _mend_database(cluster: Postgres) -> None:
    cluster.start()


def _break_schema(cluster: Postgres) -> None:
    cluster.sql("UPDATE alembic_version SET version_num = '0001'", _DATABASE)


def _mend_schema(cluster: Postgres) -> None:
    cluster.sql(f"UPDATE alembic_version SET version_num = '{head()}'", _DATABASE)


@pytest.mark.parametrize(
    ("broken", "mended", "code"),
    [
        (_break_database, _mend_database, "database_unavailable"),
        (_break_schema, _mend_schema, "database_not_migrated"),
    ],
    ids=["away", "behind"],
)
def test_it_is_not_ready_meanwhile_and_soon_after(
    served: Server,
    own_postgres: Postgres,
    broken: Callable[[Postgres], None],
    mended: Callable[[Postgres], None],
    code: str,
) -> None:
    """By both workers: of ten probes in a row none says otherwise. The process is alive all the time, and draws go on."""
    key = code.replace("_", "-")
    with JsonClient(served.url) as wire:
        wire.create(key, arms=arms(2))
    broken(own_postgres)
    assert {_readiness(served) for _ in range(10)} == {(503, code)}
    assert httpx.get(f"{served.url}/healthz", verify=NO_CERTIFICATES).status_code == 200
    mended(own_postgres)
    began = time.monotonic()
    wait_until(lambda: {_readiness(served) for _ in range(10)} == {(200, None)}, "it is ready again")
    assert time.monotonic() - began < _BACK_SECONDS
    with JsonClient(served.url) as wire:
        assert wire.ask(key)["draw"] == 1
