"""What operators do to a PostgreSQL under a service: callers are told to come again, and it goes on by itself."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testing.json_client import JsonClient, Reply, arms
from testing.postgres import Postgres
from testing.server import Server

_DATABASE = "database_faults"
_E = "/v1/experiments"


@pytest.fixture(scope="module")
def service(postgres: Postgres) -> Iterator[Server]:
    """A service on a database of its own, in which nothing unexpected may happen."""
    with Server(postgres.copy_of("template_bestarm", _DATABASE)) as running:
        with JsonClient(running.url) as client:
            for name in ("one", "other"):
                client.create(name, arms=arms(2))
                client.ask(name)
        yield running
        logged = running.log.read_text()
    assert "Traceback" not in logged, logged


@contextmanager
def _set_for_all(postgres: Postgres, setting: str, value: str) -> Iterator[None]:
    """A setting of the database, for all sessions: those that there are end."""
    postgres.sql(f"ALTER DATABASE {_DATABASE} SET {setting} = '{value}'")
    postgres.drop_connections(_DATABASE)
    yield
    postgres.sql(f"ALTER DATABASE {_DATABASE} RESET {setting}")
    postgres.drop_connections(_DATABASE)


@contextmanager
def _held(postgres: Postgres, statement: str) -> Iterator[None]:
    """A session that has run this, and does not end its transaction."""
    session = subprocess.Popen(
        [postgres.binaries / "psql", "-h", postgres.folder, "-U", "bestarm", "-d", _DATABASE, "-Atq"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write(f"BEGIN;\n{statement};\nSELECT 'held';\n")
    session.stdin.flush()
    while session.stdout.readline().strip() != "held":
        assert session.poll() is None
    yield
    session.stdin.close()
    session.wait(30)
    session.stdout.close()


def _come_again(reply: Reply, code: str = "database_unavailable") -> None:
    assert (reply.status, reply.body["code"], reply.headers["Retry-After"]) == (503, code, "1")


def test_a_read_only_database_is_read(service: Server, postgres: Postgres) -> None:
    """Whatever would write is 503, whatever reads is answered; as soon as it can be written again, it is."""
    with JsonClient(service.url) as client:
        assignment = client.ask("one")["id"]
        with _set_for_all(postgres, "default_transaction_read_only", "on"):
            _come_again(client.send("POST", f"{_E}/one/assignments", {}))
            _come_again(client.send("POST", f"{_E}/one/assignments/batch", {"count": 3}))
            _come_again(client.send("POST", f"{_E}/one/assignments/{assignment}/reward", {"reward": 1}))
            _come_again(client.send("PATCH", f"{_E}/one", {"name": f"new {time.time()}"}))
            _come_again(client.send("POST", _E, {"key": "never", "arms": arms(2)}))
            for path in (f"{_E}/one/recommendation", _E, f"{_E}/one/assignments/{assignment}", "/readyz"):
                assert client.send("GET", path).status == 200, path
        client.tell("one", assignment, 1)


def test_a_statement_that_an_operator_s_timeout_ends_can_be_sent_again(service: Server, postgres: Postgres) -> None:
    """On every way to the database: groups, versions, and what goes through the pool."""
    paths = [f"{_E}/one/recommendation", _E, f"{_E}/one", f"{_E}/one/assignments", f"{_E}/one/events"]
    with JsonClient(service.url) as client, _set_for_all(postgres, "statement_timeout", "100ms"):
        with _held(postgres, "LOCK TABLE experiments IN ACCESS EXCLUSIVE MODE"):
            for path in paths:
                _come_again(client.send("GET", path))
            _come_again(client.send("POST", f"{_E}/one/assignments", {}))
            _come_again(client.send("PATCH", f"{_E}/one", {"name": f"new {time.time()}"}))
            _come_again(client.send("POST", _E, {"key": "never", "arms": arms(2)}))
        client.ask("one")


def test_a_locked_experiment_holds_nobody_else_up(service: Server, postgres: Postgres) -> None:
    """Its asks are refused, the first after a while, the next ones at once; another experiment is asked meanwhile."""
    with JsonClient(service.url) as client:
        with _held(postgres, "SELECT FROM experiments WHERE key = 'one' FOR UPDATE"):
            waited = []
            for _ in range(3):
                began = time.monotonic()
                _come_again(client.send("POST", f"{_E}/one/assignments", {}), "experiment_locked")
                waited.append(time.monotonic() - began)
                client.ask("other")
                assert client.send("GET", f"{_E}/one/recommendation").status == 200
            assert max(waited[1:]) < waited[0] / 2
        client.ask("one")
        client.ask("one")
