"""The `bestarm` command, and the service as processes: started, stopped, killed."""

from __future__ import annotations

import json
import re
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
from service.cli import SUBCOMMANDS, loaded
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.postgres import Postgres
from testing.program import bestarm
from testing.rows import Rows
from testing.server import NO_CERTIFICATES, Server, free_port

pytestmark = pytest.mark.process


def test_version() -> None:
    """The command tells its version."""
    told = bestarm("--version")
    assert (told.returncode, told.stdout.strip()) == (0, f"bestarm {__version__}")


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_help_of_all_is_the_help_of_each(name: str) -> None:
    """What the program says of its subcommands without loading them is what they say of themselves."""
    assert SUBCOMMANDS[name].help == loaded(name).help


_LOADED = "\nimport sys; print(*sorted(sys.modules))"
_HELP = """
from service.cli import app
try:
    app(["--help"])
except SystemExit:
    print()
"""
_OF_WORKERS = {
    "alembic",
    "fastapi",
    "httpx",
    "numpy",
    "scipy",
    "service.engine.writer",
    "service.web.api",
    "service.web.fast_path",
}


def _loaded_by(program: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", program + _LOADED], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_nothing_that_it_does_not_show() -> None:
    """No subcommand, no settings, no database: it is there at once."""
    of_ours = {name for name in _loaded_by(_HELP) if name.partition(".")[0] == "service"}
    assert of_ours == {"service", "service.cli"}


def test_what_starts_workers_does_not_load_what_they_do(sqlite_databases: NewDatabase) -> None:
    """Their supervisor has no use for it: a start costs it half a second less, and it is small."""
    assert not _OF_WORKERS & _loaded_by("import service.command_line.serve_command")
    assert _loaded_by("import service.main") >= _OF_WORKERS - {"alembic"}
    with Server(sqlite_databases(), workers=2) as server:
        assert "numpy" not in Path(f"/proc/{server.process.pid}/maps").read_text()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])  # noqa: S104 - what must be refused
def test_only_loopback_without_being_told(host: str, tmp_path: Path) -> None:
    """Any other address is refused before anything is opened, with the flag that would allow it."""
    refused = bestarm("serve", "--host", host, BESTARM_DATABASE_URL=f"sqlite:///{tmp_path}/bestarm.db")
    assert refused.returncode == 2
    assert host in refused.stderr
    assert "--insecure" in refused.stderr
    assert "BESTARM_ADMIN_KEY" in refused.stderr
    assert not (tmp_path / "bestarm.db").exists()


def test_a_database_that_is_away_is_not_one_without_keys() -> None:
    """Beyond loopback it is asked for keys first: the reason for the refusal is the database, and it is named."""
    url = f"postgresql://127.0.0.1:{free_port()}/bestarm"
    refused = bestarm("serve", "--host", "0.0.0.0", BESTARM_DATABASE_URL=url)  # noqa: S104 - never listened on
    assert refused.returncode == 1
    assert f"Cannot tell whether there are keys in {url}" in refused.stderr.replace("\n", "")
    assert "does not answer" in refused.stderr
    assert "there are no keys" not in refused.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BESTARM_PORT", "99999"),
        ("BESTARM_WORKERS", "0"),
        ("BESTARM_LOG_LEVEL", "loud"),
        ("BESTARM_LOG_LEVEL", "[/red]"),
        ("BESTARM_OTLP_ENDPOINT", "collector:4318"),
        ("BESTARM_TRACED_SHARE", "2"),
    ],
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
            with httpx.Client(base_url=self.url, timeout=30, verify=NO_CERTIFICATES) as client:
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


def test_keys_from_the_command_line(tmp_path: Path) -> None:
    """Made, listed without the secret, replaced and revoked; the output is the secret alone."""
    url = {"BESTARM_DATABASE_URL": f"sqlite:///{tmp_path}/bestarm.db"}
    assert bestarm("migrate", **url).returncode == 0
    made = bestarm("keys", "create", "--label", "[/ops]", "--scope", "read", "--scope", "assign", "--expires-in", "90d", **url)
    secret = made.stdout.strip()
    assert re.fullmatch(r"ba_[0-9a-f]{12}_[\w-]{43}", secret)
    listed = bestarm("keys", "list", **url).stdout
    assert secret not in listed
    assert {"[/ops]", "assign, read", "active", secret[:15]} <= set(re.split(r"\s{2,}|\n", listed))
    name = re.search(r"key_[0-9a-f]{20}", listed)
    assert name
    successor = bestarm("keys", "rotate", name[0], "--grace", "0s", **url)
    assert successor.stdout.strip() != secret
    assert "expired" in bestarm("keys", "list", **url).stdout
    assert "([/ops]) is revoked" in bestarm("keys", "revoke", name[0], **url).stderr
    unknown = bestarm("keys", "revoke", "key_nothing", **url)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    wrong = bestarm("keys", "create", "--label", "x", "--scope", "all", **url)
    assert (wrong.returncode, "all" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    "wanted",
    [
        ("--experiment", "No Key"),
        ("--experiment", ""),
        ("--experiment", "one", "--origin", "null"),
        ("--experiment", "one", "--origin", "https://shop.example/"),
        ("--expires-in", "9999999d"),
    ],
    ids=["no key", "nothing", "every sandboxed page", "a path", "too long"],
)
def test_a_key_from_the_command_line_is_no_hole_either(tmp_path: Path, wanted: tuple[str, ...]) -> None:
    """What the API would refuse is refused here, too."""
    url = {"BESTARM_DATABASE_URL": f"sqlite:///{tmp_path}/bestarm.db"}
    assert bestarm("migrate", **url).returncode == 0
    refused = bestarm("keys", "create", "--label", "x", "--scope", "assign", *wanted, **url)
    assert (refused.returncode, refused.stdout) == (2, "")


def test_an_admin_key_that_is_too_short_is_not_repeated(tmp_path: Path) -> None:
    """A sentence, and nothing of the secret."""
    for given in ({"BESTARM_ADMIN_KEY": "hush-hush"}, {"BESTARM_ADMIN_KEY_FILE": str(tmp_path / "secret")}):
        (tmp_path / "secret").write_text("hush-hush\n")
        refused = bestarm("serve", **given)
        assert refused.returncode == 2
        assert "BESTARM_ADMIN_KEY" in refused.stderr
        assert "hush" not in refused.stderr


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database with one experiment, `e`, of 30 draws."""
    url = f"sqlite:///{tmp_path_factory.mktemp('exported')}/bestarm.db"
    with Server(url) as server, JsonClient(server.url) as wire:
        wire.create("e", arms=arms(2))
        assert wire.send("POST", "/v1/experiments/e/assignments/batch", {"count": 30}).status == 201
    return url


def test_an_export_from_the_command_line(exported: str, tmp_path: Path) -> None:
    """A whole file that only its owner can read, in the format of its name; one that is there is not replaced unasked."""
    file = tmp_path / "draws.jsonl"
    done = bestarm("export", "e", "--out", str(file), "--after", "11", BESTARM_DATABASE_URL=exported)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"20 rows in {file}, as of version 31; the last has sequence 31.\n"
    assert [json.loads(line)["draw"] for line in file.read_text().splitlines()] == list(range(11, 31))
    assert file.stat().st_mode & 0o777 == 0o600
    again = bestarm("export", "e", "--out", str(file), BESTARM_DATABASE_URL=exported)
    assert again.returncode == 2
    assert "--replace" in again.stderr
    assert len(file.read_text().splitlines()) == 20
    forced = bestarm("export", "e", "--of", "events", "--out", str(file), "--replace", BESTARM_DATABASE_URL=exported)
    assert forced.returncode == 0
    assert len(file.read_text().splitlines()) == 31
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    printed = bestarm("export", "e", "--out", "-", "--arm", "arm-0", BESTARM_DATABASE_URL=exported)
    assert printed.stdout.splitlines()[0].startswith("sequence,draw,")
    assert len(printed.stdout.splitlines()) == 1 + 15


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nope"], "There is no experiment 'nope'."),
        (["e", "--of", "secrets"], "assignments, observations, events, history"),
        (["e", "--format", "xlsx"], "csv, jsonl, parquet"),
        (["e", "--since", "yesterday"], "ISO 8601"),
        (["e", "--arm", "nope"], "has no arm 'nope'"),
        (["e", "--out", "no/such/folder/file.csv"], "No such file or directory"),
    ],
    ids=" ".join,
)
def test_an_export_that_cannot_be_made(exported: str, tmp_path: Path, options: list[str], said: str) -> None:
    """A sentence, and nothing is left behind."""
    out = [] if "--out" in options else ["--out", str(tmp_path / "file.csv")]
    refused = bestarm("export", *options, *out, BESTARM_DATABASE_URL=exported)
    assert refused.returncode in (1, 2)
    assert said in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.stderr
    assert list(tmp_path.iterdir()) == []
