"""Two releases on one PostgreSQL under load: an upgrade and the way back. Nothing is lost or doubled, and replay is clean."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from service import __version__
from service.storage.migrate import head
from testing.databases import NewDatabase
from testing.installation import ROOT
from testing.other_releases import Migration, install_release, release_before, release_to_come
from testing.postgres import Postgres
from testing.processes import wait_until
from testing.server import NO_CERTIFICATES, Server
from testing.torture.calls import Call
from testing.torture.checker import check
from testing.torture.crowd import Crowd, create_experiments
from testing.torture.stored import read_stored
from testing.torture.workloads import EXPERIMENTS

pytestmark = [pytest.mark.process, pytest.mark.serial]
_BETWEEN = 150
"""Calls that are answered between one step and the next."""


class Release(NamedTuple):
    """How to run it."""

    program: Sequence[str | Path]
    cwd: Path

    def command(self, *arguments: str, url: str) -> subprocess.CompletedProcess[str]:
        """One of its commands, to the end."""
        environment = {"BESTARM_DATABASE_URL": url, "PATH": "/usr/bin:/bin", "HOME": str(self.cwd)}
        return subprocess.run(
            [*self.program, *arguments], cwd=self.cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
        )


_MODULE = (sys.executable, "-m", "service")
_THIS = Release(_MODULE, ROOT)


class Fleet:
    """Two services on one database, while clients ask and tell; each service may be of another release."""

    def __init__(self, url: str, first: Release) -> None:
        self.url = url
        self._open = ExitStack()
        self._logs: list[Path] = []
        self.services = [self._started(first), self._started(first)]
        create_experiments(self.services[0].url)
        self._crowd = self._open.enter_context(Crowd([one.url for one in self.services], threads=2))
        self.load()

    def _started(self, release: Release, port: int | None = None) -> Server:
        started = Server(self.url, port=port, program=release.program, cwd=release.cwd)
        self._logs.append(started.log)
        return self._open.enter_context(started)

    def load(self) -> None:
        """Let the clients go on for a while, and see that every service is ready."""
        answered = sum(file.read_bytes().count(b"\n") for file in self._crowd.folder.glob("*.calls"))
        self._crowd.wait_until_busy(answered + _BETWEEN)
        assert [self.readiness(place) for place in range(2)] == [200, 200]

    def readiness(self, place: int) -> int:
        """What a proxy is told of it."""
        return httpx.get(f"{self.services[place].url}/readyz", verify=NO_CERTIFICATES, timeout=10).status_code

    def replace(self, place: int, release: Release) -> None:
        """As a rolling restart does: stop one, start the other in its place; the clients go on."""
        assert self.services[place].stop() == 0
        self.services[place] = self._started(release, self.services[place].port)
        self.load()

    def call_back(self) -> list[Call]:
        """All that the clients did. What was logged meanwhile has no stack trace in it."""
        calls = self._crowd.call_back()
        logged = "".join(log.read_text() for log in self._logs)
        assert '"exception"' not in logged, logged
        return calls

    def close(self) -> None:
        """End everything."""
        self._open.close()


def _require_all_kept(calls: list[Call], url: str) -> None:
    """Whatever was answered is stored, once and in order; every decision is found again by replay."""
    assert sum(call.is_acknowledged for call in calls) > _BETWEEN
    assert {call.status for call in calls} <= {200, 201, 404, 409, 422, 503, None}
    for key in EXPERIMENTS:
        assert check(calls, read_stored(url, key)) == [], key


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The release before, installed from its own wheel."""
    folder = tmp_path_factory.mktemp("before")
    return Release([install_release(release_before(), folder)], folder)


@pytest.fixture
def empty(postgres: Postgres, key: str) -> str:
    """The URL of a database with nothing in it."""
    name = key.replace("-", "_") + "_empty"
    postgres.sql(f"CREATE DATABASE {name}")
    return postgres.url(name)


@pytest.fixture
def fleet_of_before(before: Release, empty: str) -> Iterator[Fleet]:
    """The release before, on a database that it made."""
    assert before.command("migrate", url=empty).returncode == 0
    running = Fleet(empty, before)
    yield running
    running.close()


def test_the_release_before_beside_this_one(fleet_of_before: Fleet, before: Release) -> None:
    """Migrate, replace one after the other; then back again, one after the other, to what was there."""
    migrated = _THIS.command("migrate", url=fleet_of_before.url)
    assert migrated.returncode == 0, migrated.stderr
    assert f"Releases at {release_before().migration} or later may run on it." in migrated.stderr
    fleet_of_before.load()
    for release in (_THIS, before):
        for place in range(2):
            fleet_of_before.replace(place, release)
    _require_all_kept(fleet_of_before.call_back(), fleet_of_before.url)
    assert _THIS.command("replay", "--all", url=fleet_of_before.url).returncode == 0


_STEPS = """op.create_table("news", sa.Column("id", sa.Integer, primary_key=True))
    for table in ("experiments", "arms", "assignments", "events"):
        op.add_column(table, sa.Column("of_the_next", sa.Integer, nullable=False, server_default=sa.text("7")))
    op.create_index("ix_news", "assignments", ["experiment_id", "of_the_next"])"""
_EXPANDING = Migration("9001", head(), _STEPS, head())
_CONTRACTING = Migration("9002", "9001", 'op.drop_table("news")')


@pytest.fixture
def fleet(postgresql_databases: NewDatabase) -> Iterator[Fleet]:
    """This release, on a database of its own."""
    running = Fleet(postgresql_databases(), _THIS)
    yield running
    running.close()


def test_a_release_to_come_beside_this_one(fleet: Fleet, tmp_path: Path) -> None:
    """What it adds disturbs nobody, and this release starts on it, too; what it takes away one release later ends that."""
    expanding = Release(_MODULE, release_to_come(tmp_path / "expanding", _EXPANDING))
    contracting = Release(_MODULE, release_to_come(tmp_path / "contracting", _EXPANDING, _CONTRACTING))
    assert expanding.command("migrate", url=fleet.url).returncode == 0
    fleet.load()
    fleet.replace(0, expanding)
    fleet.replace(0, _THIS)
    left_alone = _THIS.command("migrate", url=fleet.url)
    assert left_alone.returncode == 0
    assert f"is at migration 9001. Releases at {head()} or later may run on it." in left_alone.stderr
    fleet.replace(0, expanding)
    fleet.replace(1, expanding)
    calls = fleet.call_back()
    assert contracting.command("migrate", url=fleet.url).returncode == 0
    for command in (("serve", "--port", "0"), ("migrate",)):
        refused = _THIS.command(*command, url=fleet.url)
        assert refused.returncode == 1
        assert refused.stderr.count("\n") == 1
        assert f"for releases at 9002 or later; this one ({__version__}) is at {head()}: run a newer release." in refused.stderr
    wait_until(lambda: fleet.readiness(0) == 503, "a release that was left behind is not ready")
    _require_all_kept(calls, fleet.url)
