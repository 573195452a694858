"""`bestarm backup`, `prune` and `forget` as an operator types them, beside a running service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.application.commands.ask import AskMany
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.tell import RewardItem, TellMany
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.program import typed
from testing.rows import Rows
from testing.server import Server
from testing.workers import Workers

pytestmark = pytest.mark.process


def write_concluded(url: str, key: str, draws: int) -> None:
    """A concluded experiment with so many draws, all told."""
    workers = Workers(url, count=1)
    workers.now = 0  # times never run backwards: all of it happens when it is created
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    for _ in range(0, draws, 1_000):
        drawn = workers.submit(key, AskMany([f"user-{number}" for number in range(1_000)], by_count=False))
        rewards = [RewardItem(assignment=one.assignment.id, reward=1.0) for one in drawn if one.assignment]
        workers.submit(key, TellMany(rewards))
    workers.submit(key, LifecycleMove("conclude", "a"))
    workers.close()


def test_a_backup_of_a_service_that_runs(sqlite_databases: NewDatabase, tmp_path: Path) -> None:
    """A copy that another service serves from, and that replays; the same file again needs a word."""
    file = tmp_path / "copy.db"
    with Server(sqlite_databases()) as server, JsonClient(server.url) as wire:
        wire.create("one", arms=arms(2))
        ids = [wire.ask("one")["id"] for _ in range(20)]
        done = typed("backup", str(file), on=server.database_url)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert str(file) in done.stderr
        wire.ask("one")
        refused = typed("backup", str(file), on=server.database_url)
        assert (refused.returncode, refused.stderr) == (2, f"Not done: {file} is there already.\n")
    assert typed("replay", "--all", on=f"sqlite:///{file}").stdout == "one: 21 events replayed, no difference.\n"
    with Server(f"sqlite:///{file}") as restored, JsonClient(restored.url) as wire:
        assert wire.tell("one", ids[-1], 1)["status"] == "rewarded"
        assert wire.ask("one")["draw"] == 21


def test_a_postgresql_is_left_to_its_own_tools(postgresql_databases: NewDatabase, tmp_path: Path) -> None:
    """The sentence names them, and nothing is written."""
    refused = typed("backup", str(tmp_path / "copy.db"), on=postgresql_databases())
    assert refused.returncode == 2
    assert "pg_dump" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_pruning_beside_a_service(new_database: NewDatabase) -> None:
    """First what would go, then it goes; callers are told why they are refused, and everything else still answers."""
    url = new_database()
    write_concluded(url, "old", 1_000)
    dry = typed("prune", "--older-than", "0s", "--dry-run", on=url)
    assert dry.returncode == 0, dry.stderr
    assert dry.stderr.startswith("old: 1,000 assignments, 2,000 events would go, about ")
    with Server(url) as server, JsonClient(server.url) as wire:
        wire.create("new", arms=arms(2))
        path = "/v1/experiments/old"
        listed = wire.send("GET", f"{path}/assignments").body["assignments"]
        shown = wire.send("GET", path).body
        assert (shown["pruned_at"], len(listed)) == (None, 20)
        looked = wire.send("GET", f"{path}/recommendation").body
        done = typed("prune", "--older-than", "0s", on=url)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "old: 3,000 rows are gone.")
        assert wire.send("GET", path).body["pruned_at"] is not None
        again = wire.send("GET", f"{path}/recommendation").body
        changing = ("version", "as_of")
        assert {name: again[name] for name in again if name not in changing} == {
            name: looked[name] for name in looked if name not in changing
        }
        for method, target, body in (
            ("POST", f"{path}/assignments/{listed[0]['id']}/reward", {"reward": 1}),
            ("PUT", f"{path}/assignments/{listed[0]['id']}/reward", {"reward": 0}),
            ("POST", f"{path}/rewards", {"rewards": [{"assignment": listed[0]["id"], "reward": 1}]}),
            ("POST", f"{path}/observations", {"observations": [{"arm": "a", "reward": 1}]}),
            ("POST", f"{path}/reopen", None),
        ):
            reply = wire.send(method, target, body)
            assert (reply.status, reply.body["code"]) == (409, "experiment_pruned"), reply
        missing = wire.send("GET", f"{path}/assignments/{listed[0]['id']}")
        assert (missing.status, missing.body["code"]) == (404, "assignment_not_found")
        assert "It was pruned: none of its assignments is left." in missing.body["detail"]
        assert "It was pruned" in wire.send("GET", f"{path}/observations/any").body["detail"]
        assert wire.send("GET", f"{path}/assignments").body["assignments"] == []
        assert wire.send("GET", f"{path}/assignments?since=2020-01-01T00:00:00Z&status=rewarded").body["assignments"] == []
        assert wire.send("GET", f"{path}/observations?since=2020-01-01T00:00:00Z").body["observations"] == []
        kinds = [event["kind"] for event in wire.send("GET", f"{path}/events?since=2020-01-01T00:00:00Z").body["events"]]
        assert kinds == ["pruned", "lifecycle", "created"]
        assert wire.send("GET", f"{path}/events?until=2020-01-01T00:00:00Z").body["events"] == []
        assert wire.send("GET", f"{path}/history").body["points"]
        assert wire.send("POST", f"{path}/assignments", {}).body["reason"] == "concluded"
        assert wire.ask("new")["draw"] == 1
        assert [entry["kind"] for entry in wire.send("GET", "/v1/log").body["entries"]] == ["experiment_pruned"]
    replayed = typed("replay", "old", on=url)
    assert (replayed.returncode, "2,000 events are gone" in replayed.stdout) == (0, True), replayed.stdout


def test_what_is_not_over_is_not_pruned(new_database: NewDatabase) -> None:
    """A sentence, and exit code 2 where it was named; nothing at all where it was not."""
    url = new_database()
    write_concluded(url, "old", 1_000)
    for arguments, code, said in (
        (("--older-than", "200d"), 0, "No experiment that is over ended so long ago."),
        (("--older-than", "200d", "old"), 2, "Experiment 'old' ended later than that."),
        (("--older-than", "0s", "none"), 2, "There is no experiment 'none'."),
        (("--older-than", "tomorrow"), 2, "A time is written 90d, 12h, 30m or 45s."),
    ):
        done = typed("prune", *arguments, on=url)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    with Rows(url) as rows:
        assert rows.query("SELECT count(*) FROM assignments") == [(1_000,)]


def test_a_killed_pruning_is_taken_up_again(new_database: NewDatabase) -> None:
    """Killed half way beside a service that is asked: nobody notices, and the next run does the rest."""
    url = new_database()
    write_concluded(url, "old", 3_000)
    command = [sys.executable, "-m", "service", "prune", "--older-than", "0s"]
    with Server(url, workers=2) as server, JsonClient(server.url) as wire, Rows(url) as rows:
        wire.create("new", arms=arms(2))
        pruning = subprocess.Popen(command, env=os.environ | {"BESTARM_DATABASE_URL": url}, stderr=subprocess.DEVNULL)
        counted, deadline, draws = "SELECT count(*) FROM assignments", time.monotonic() + 120, 0
        while len(rows.assignments_of("old")) > 2_500:
            assert time.monotonic() < deadline
            draws += 1
            assert wire.ask("new")["draw"] == draws
        pruning.kill()
        pruning.wait()
        assert 0 < len(rows.assignments_of("old")) <= 2_500
        half = typed("replay", "old", on=url)
        assert (half.returncode, "run `bestarm prune` again" in half.stdout) == (0, True), half.stdout
        done = typed("prune", "--older-than", "0s", on=url)
        assert done.returncode == 0, done.stderr
        assert rows.query(counted) == [(draws,)]
        [(details,)] = rows.query("SELECT details FROM instance_log")
        assert json.loads(details) == {"experiment": "old", "rows": 9_000}
    assert "run `bestarm prune` again" not in typed("replay", "old", on=url).stdout
    assert typed("replay", "new", on=url).returncode == 0


def test_forgetting_beside_a_service(new_database: NewDatabase) -> None:
    """The unit is asked for, told and listed before; after it the service knows the name no more, in no worker."""
    url = new_database()
    name, path = "zoë@example.com", "/v1/experiments/one"
    with Server(url, workers=2) as server, JsonClient(server.url) as wire:
        wire.create("one", arms=arms(2), sticky=True)
        ids = {unit: wire.ask("one", unit)["id"] for unit in ("ann", name, "bob")}
        done = typed("forget", "--unit", name, on=url)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert done.stderr.splitlines() == ["one: 1 assignment.", "Forgotten in 1 experiment and 0 stored replies."]
        assert name not in done.stderr
        for _ in range(8):  # whichever worker answers
            with JsonClient(server.url) as other:
                told = other.tell("one", ids[name], 1)
                assert told["unit"].startswith("forgotten-")
        assert wire.send("GET", f"{path}/assignments?unit=zo%C3%AB%40example.com").body["assignments"] == []
        assert wire.send("POST", f"{path}/units/zo%C3%AB%40example.com/reward", {"reward": 1}).body["code"] == "unit_not_found"
        [event] = wire.send("GET", f"{path}/events?kind=forgotten").body["events"]
        assert event["details"] == {"assignments": 1, "observations": 0}
        assert wire.ask("one", "ann")["reason"] == "sticky"
        assert wire.ask("one", name)["draw"] == 4
    assert typed("replay", "one", on=url).returncode == 0
    for arguments, code, said in (
        (("--unit", "nobody"), 0, "Forgotten in 0 experiments and 0 stored replies."),
        (("--unit", name, "--experiment", "none"), 2, "There is no experiment 'none'."),
        (("--unit", ""), 2, "A unit has 1 to 255 characters."),
    ):
        done = typed("forget", *arguments, on=url)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
