"""The `bestarm` command, and the service as processes: started, stopped, killed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from service import __version__
from testing.json_client import JsonClient, arms
from testing.postgres import Postgres
from testing.rows import Rows
from testing.server import Server, free_port

pytestmark = pytest.mark.process


def bestarm(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "service", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_version() -> None:
    """The command tells its version."""
    told = bestarm("--version")
    assert (told.returncode, told.stdout.strip()) == (0, f"bestarm {__version__}")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])  # noqa: S104 - what must be refused
def test_only_loopback_without_being_told(host: str, tmp_path: Path) -> None:
    """Any other address is refused before anything is opened, with the flag that would allow it."""
    refused = bestarm("serve", "--host", host, BESTARM_DATABASE_URL=f"sqlite:///{tmp_path}/bestarm.db")
    assert refused.returncode == 2
    assert host in refused.stderr
    assert "--insecure" in refused.stderr
    assert not (tmp_path / "bestarm.db").exists()


@pytest.mark.parametrize(
    ("variable", "value"),
    [("BESTARM_PORT", "99999"), ("BESTARM_WORKERS", "0"), ("BESTARM_LOG_LEVEL", "loud"), ("BESTARM_LOG_LEVEL", "[/red]")],
)
def test_a_wrong_setting_is_named(variable: str, value: str) -> None:
    """A setting out of its range is named in a sentence, not in a stack trace."""
    refused = bestarm("serve", **{variable: value})
    assert refused.returncode == 2
    assert variable in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_postgresql_must_be_migrated_by_its_operator(postgres: Postgres) -> None:
    """`serve` names the command that mends it; after that command it starts."""
    postgres.sql("CREATE DATABASE unmigrated")
    url = postgres.url("unmigrated")
    refused = bestarm("serve", "--port", str(free_port()), BESTARM_DATABASE_URL=url)
    assert refused.returncode == 1
    assert "bestarm migrate" in refused.stderr
    assert postgres.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "unmigrated") == "0"
    assert bestarm("migrate", BESTARM_DATABASE_URL=url).returncode == 0
    with Server(url) as server:
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        postgres.sql("UPDATE alembic_version SET version_num = 'older'", "unmigrated")
        unready = httpx.get(f"{server.url}/readyz")
        assert (unready.status_code, unready.json()["code"]) == (503, "database_not_migrated")
        assert unready.headers["retry-after"]
        assert httpx.get(f"{server.url}/healthz").status_code == 200


@pytest.mark.parametrize(
    "url", ["postgresql://nobody@127.0.0.1:1/none", "mysql://localhost/db", "nonsense"], ids=["away", "mysql", "nonsense"]
)
def test_a_database_that_cannot_be_used_is_named(url: str) -> None:
    """The command says so in a sentence and leaves; no stack trace."""
    for command in (["serve", "--port", "0"], ["migrate"]):
        refused = bestarm(*command, BESTARM_DATABASE_URL=url)
        assert refused.returncode == 1
        assert "Cannot" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_an_embedded_database_that_is_not_there_is_not_made_to_look_into(tmp_path: Path) -> None:
    """`replay` names the file and the setting; only `serve` and `migrate` make a new database, folder and all."""
    file = tmp_path / "typo" / "bestarm.db"
    refused = bestarm("replay", "any", BESTARM_DATABASE_URL=f"sqlite:///{file}")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"Cannot replay: There is no database {file}. BESTARM_DATABASE_URL says which one is meant.\n"
    assert not file.parent.exists()
    assert bestarm("migrate", BESTARM_DATABASE_URL=f"sqlite:///{file}").returncode == 0
    unknown = bestarm("replay", "any", BESTARM_DATABASE_URL=f"sqlite:///{file}")
    assert unknown.returncode == 2
    assert "any" in unknown.stderr


def test_an_embedded_database_without_a_schema_is_named(tmp_path: Path) -> None:
    """`replay` says what mends it."""
    (tmp_path / "empty.db").touch()
    refused = bestarm("replay", "any", BESTARM_DATABASE_URL=f"sqlite:///{tmp_path}/empty.db")
    assert refused.returncode == 2
    assert "bestarm migrate" in refused.stderr


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["migrate"], ["replay", "any"]], ids=" ".join)
def test_a_file_that_is_no_database_is_named(command: list[str], tmp_path: Path) -> None:
    """And left as it is."""
    file = tmp_path / "notes.txt"
    file.write_text("These are my notes, and no database at all. " * 10)
    refused = bestarm(*command, BESTARM_DATABASE_URL=f"sqlite:///{file}")
    assert refused.returncode in {1, 2}
    assert f"The database {file} cannot be opened. (file is not a database)" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert file.read_text().startswith("These are my notes")


def test_a_database_that_somebody_holds_is_named(tmp_path: Path) -> None:
    """After some seconds of waiting: in a sentence, not in a stack trace."""
    file = tmp_path / "held.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        refused = bestarm("migrate", BESTARM_DATABASE_URL=f"sqlite:///{file}")
    assert refused.returncode == 1
    assert "database is locked" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_embedded_database_is_migrated_by_serve(tmp_path: Path) -> None:
    """A file that does not exist yet, in a folder that does not either, is made and brought to the newest schema."""
    with Server(f"sqlite:///{tmp_path}/new/folder/bestarm.db") as server, JsonClient(server.url) as wire:
        wire.create("first", arms=arms(2))
        assert wire.ask("first")["draw"] == 1


class Traffic:
    """Clients that ask and tell until the service is gone, and remember what was acknowledged."""

    def __init__(self, url: str, key: str, clients: int) -> None:
        self.url, self.key = url, key
        self.asked: dict[int, str] = {}
        self.told: dict[int, float] = {}
        self.answers: list[int] = []
        self.flowing = Event()
        self.threads = [Thread(target=self._flow) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def _flow(self) -> None:
        path = f"/v1/experiments/{self.key}/assignments"
        try:
            with httpx.Client(base_url=self.url, timeout=30) as client:
                while True:
                    asked = client.post(path, json={})
                    self.answers.append(asked.status_code)
                    draw = asked.json()["draw"]
                    self.asked[draw] = asked.json()["id"]
                    told = client.post(f"{path}/{asked.json()['id']}/reward", json={"reward": draw % 2})
                    self.answers.append(told.status_code)
                    self.told[draw] = draw % 2
                    if len(self.told) > 100:
                        self.flowing.set()
        except httpx.TransportError:
            return  # the service is gone

    def join(self) -> None:
        """Wait for all clients."""
        for thread in self.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self.threads)


def check_kept(traffic: Traffic, database_url: str) -> None:
    """Every acknowledged answer is in the database, draws have no gap, counts equal rows."""
    with Rows(database_url) as rows:
        stored = {draw: (status, reward) for draw, _, status, reward in rows.assignments_of(traffic.key)}
        counted = rows.arms_of(traffic.key)
    assert set(traffic.answers) <= {200, 201}
    assert sorted(stored) == list(range(1, len(stored) + 1))
    assert set(traffic.asked) <= set(stored)
    assert {draw: stored[draw] for draw in traffic.told} == {draw: ("rewarded", reward) for draw, reward in traffic.told.items()}
    rewarded = sum(status == "rewarded" for status, _ in stored.values())
    assert (sum(one[1] for one in counted), sum(one[2] for one in counted)) == (len(stored) - rewarded, rewarded)


@pytest.fixture
def traffic_of(database_url: str, key: str) -> Iterator[tuple[Server, Traffic]]:
    """A service with two workers under traffic."""
    with Server(database_url, workers=2) as server:
        with JsonClient(server.url) as wire:
            wire.create(key, arms=arms(3))
        traffic = Traffic(server.url, key, clients=8)
        assert traffic.flowing.wait(60)
        yield server, traffic


def test_a_stop_finishes_the_requests_in_flight(traffic_of: tuple[Server, Traffic], database_url: str) -> None:
    """After SIGTERM every answer that went out is kept, and nothing that was asked for is half done."""
    server, traffic = traffic_of
    assert server.stop() == 0
    traffic.join()
    check_kept(traffic, database_url)


def test_a_kill_loses_no_acknowledged_answer(traffic_of: tuple[Server, Traffic], database_url: str) -> None:
    """After kill -9 in the middle of traffic every acknowledged answer is there, and a new start goes on without a gap."""
    server, traffic = traffic_of
    server.kill()
    traffic.join()
    check_kept(traffic, database_url)
    with Server(database_url) as again, JsonClient(again.url) as wire, Rows(database_url) as rows:
        last = len(rows.assignments_of(traffic.key))
        assert wire.ask(traffic.key)["draw"] == last + 1
        first = min(traffic.told)
        assert wire.tell(traffic.key, traffic.asked[first], traffic.told[first])["status"] == "rewarded"
