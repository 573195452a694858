"""An experiment goes from one database into another with all that has happened to it, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from service.application.commands.ask import Ask, AskMany
from service.application.commands.delete import Deleter
from service.application.commands.tell import Tell
from service.application.copies.dump import dump
from service.application.copies.dump_file import DumpFile
from service.application.copies.load import LoadRequest, load
from service.application.reads import experiment_keys
from service.application.reads.differences import Difference
from service.command_line.experiment_commands import check_settings
from service.domain import PolicyKind
from service.domain.callers import by_service
from service.domain.limits import LOAD_ABANDONED_SECONDS
from service.errors import Conflict, ExperimentExists, ExperimentNotFound
from testing.databases import NewDatabase
from testing.dumps import edited
from testing.rows import Rows
from testing.varied_experiment import all_rows, write_varied
from testing.workers import Workers

_KEY = "copied"


def dumped(workers: Workers, path: Path) -> Path:
    """The file of the experiment in these workers' database."""
    with path.open("wb") as file:
        workers.run(dump(workers.contexts[0].database, _KEY, file, lambda *_: None))
    return path


def loaded(workers: Workers, path: Path, key: str | None = None, *, replay: bool = True) -> str:
    """Load it; the key that it got."""
    request = LoadRequest(check_settings, key, whole_replay=replay)
    return workers.run(load(workers.contexts[0].database, DumpFile(path), request)).key


def hidden(url: str) -> list[tuple[str, int]]:
    """Status, and number of events, of the experiments that nobody may see."""
    counted = "(SELECT count(*) FROM events v WHERE v.experiment_id = e.id)"
    with Rows(url) as rows:
        return cast("list[tuple[str, int]]", rows.query(f"SELECT status, {counted} FROM experiments e WHERE key LIKE '%/%'"))


def written(url: str, statement: str) -> None:
    """Change a database past the service."""

    async def write() -> None:
        async with workers.contexts[0].database.writing() as connection:
            await connection.exec_driver_sql(statement)

    workers = Workers(url, count=1)
    workers.run(write())
    workers.close()


@pytest.fixture
def elsewhere(new_database: NewDatabase) -> Iterator[Workers]:
    """Workers on another database of the same engine."""
    running = Workers(new_database())
    yield running
    running.close()


@pytest.fixture
def other_engine(engine: str, request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Workers on a database of the other engine."""
    made: NewDatabase = request.getfixturevalue("postgresql_databases" if engine == "sqlite" else "sqlite_databases")
    running = Workers(made())
    yield running
    running.close()


@pytest.mark.process
@pytest.mark.parametrize("policy", ["almost_tracking", "simple_tracking"])
def test_a_copy_is_equal_row_by_row_and_goes_on_alike(
    workers: Workers, other_engine: Workers, policy: PolicyKind, tmp_path: Path
) -> None:
    """From either database into the other: every row equal, replay clean, the next draws the same, also after rewards."""
    pending = write_varied(workers, _KEY, policy)
    other_engine.now = workers.now
    assert loaded(other_engine, dumped(workers, tmp_path / "one.jsonl")) == _KEY
    both = workers, other_engine
    original, copy = (one.run(all_rows(one.contexts[0].database, _KEY)) for one in both)
    assert original == copy
    without = {"batches", "prunings"} if policy == "simple_tracking" else {"prunings"}
    assert {name for name, rows in original.items() if not rows} == without
    uncounted = original["experiments"][0][23]
    assert bool(uncounted) == (policy == "simple_tracking")
    events = len(original["events"])
    assert [one.replay(_KEY) for one in both] == [events, events]
    drawn = [_go_on(one, pending) for one in both]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 1
    assert [one.replay(_KEY) for one in both] == [events + 100 + len(pending)] * 2


def _go_on(workers: Workers, pending: list[str]) -> list[str]:
    """The arms of forty asks one by one, and of sixty at once when all that was pending is told."""
    arms = [workers.submit(_KEY, Ask(f"new-{number}")).arm.key for number in range(40)]
    for name in pending:
        workers.submit(_KEY, Tell(name, "reward", 0.75))
    return arms + [answer.arm.key for answer in workers.submit(_KEY, AskMany([None] * 60, by_count=True))]


@pytest.mark.process
def test_there_and_back_again_the_file_is_the_same(workers: Workers, other_engine: Workers, tmp_path: Path) -> None:
    """Dumped, loaded into the other database and dumped there: the same lines, but for the time in the first one."""
    write_varied(workers, _KEY, sticky=True)
    first = dumped(workers, tmp_path / "first.jsonl")
    loaded(other_engine, first)
    second = dumped(other_engine, tmp_path / "second.jsonl")
    assert first.read_bytes().splitlines()[1:-1] == second.read_bytes().splitlines()[1:-1]
    loaded(workers, second, "back")
    assert workers.replay("back") == workers.replay(_KEY) + 1


def test_retries_find_their_first_answers_in_the_copy(workers: Workers, elsewhere: Workers, tmp_path: Path) -> None:
    """A key that was used in the original is known in the copy; stored replies name the experiment, so a renamed one has none."""
    write_varied(workers, _KEY)
    path = dumped(workers, tmp_path / "one.jsonl")
    loaded(elsewhere, path)
    loaded(elsewhere, path, "renamed")
    again = [one.submit(_KEY, Ask("lone-1", "key-1")) for one in (workers, elsewhere)]
    assert again[0] == again[1]
    assert again[0].replayed
    with Rows(elsewhere.url) as rows:
        counted = "SELECT e.key FROM experiments e JOIN replies r ON r.experiment_id = e.id GROUP BY e.key HAVING count(*) > 3"
        assert rows.query(counted) == [(_KEY,)]


def test_another_key_is_an_event_and_the_log_says_where_it_is_from(workers: Workers, tmp_path: Path) -> None:
    """Loaded beside the original under another key; the instance's log has both keys, and both go on alike."""
    write_varied(workers, _KEY)
    version = workers.look(_KEY).version.number
    assert loaded(workers, dumped(workers, tmp_path / "one.jsonl"), "second") == "second"
    with Rows(workers.url) as rows:
        [(renamed,)] = rows.query("SELECT details FROM events WHERE kind = 'renamed'")
        [(kind, details)] = rows.query("SELECT kind, details FROM instance_log")
    assert json.loads(renamed) == {"before": {"key": _KEY}, "after": {"key": "second"}}
    said = json.loads(details)
    assert (kind, said["experiment"], said["loaded_from"], said["version"]) == ("experiment_loaded", "second", _KEY, version)
    assert workers.submit("second", Ask("x")).arm == workers.submit(_KEY, Ask("x")).arm
    assert (workers.replay("second"), workers.replay(_KEY)) == (version + 2, version + 1)


def test_a_key_that_is_taken_is_refused_and_leaves_nothing(workers: Workers, elsewhere: Workers, tmp_path: Path) -> None:
    """At once where it is there already; and at the end where somebody takes it while the rows go in."""
    write_varied(workers, _KEY)
    path = dumped(workers, tmp_path / "one.jsonl")
    with pytest.raises(ExperimentExists):
        loaded(workers, path)
    elsewhere.create("first", [("x", 0.0), ("y", 0.0)])
    taken: list[asyncio.Task[None]] = []

    async def rename() -> None:
        async with elsewhere.contexts[1].database.writing() as connection:
            await connection.exec_driver_sql(f"UPDATE experiments SET key = '{_KEY}' WHERE key = 'first'")

    def take(_done: int, _of: int) -> None:
        if not taken:
            taken.append(asyncio.get_running_loop().create_task(rename()))

    with pytest.raises(ExperimentExists):
        elsewhere.run(load(elsewhere.contexts[0].database, DumpFile(path), LoadRequest(check_settings, report=take)))
    assert (hidden(workers.url), hidden(elsewhere.url)) == ([], [])
    assert [arm.arm.key for arm in elsewhere.look(_KEY).standings] == ["x", "y"]


def test_a_difference_that_replay_finds_keeps_it_out(workers: Workers, elsewhere: Workers, tmp_path: Path) -> None:
    """A reward that somebody changed in the file: nothing is left behind. Without the whole replay it is loaded."""
    write_varied(workers, _KEY)

    def forge(table: str, row: list[Any]) -> list[Any]:
        return [0.125 if value == 7.25 else value for value in row] if table == "assignments" else row

    forged = edited(dumped(workers, tmp_path / "one.jsonl"), tmp_path / "forged.jsonl", forge)
    with pytest.raises(Difference, match=r"0\.125"):
        loaded(elsewhere, forged)
    assert hidden(elsewhere.url) == []
    with pytest.raises(ExperimentNotFound):
        elsewhere.look(_KEY)
    assert loaded(elsewhere, forged, replay=False) == _KEY


def test_what_people_did_is_replayed_in_any_case(workers: Workers, elsewhere: Workers, tmp_path: Path) -> None:
    """A name that no event has given is a difference, also without the whole replay."""
    write_varied(workers, _KEY)

    def rename(table: str, row: list[Any]) -> list[Any]:
        return [row[0], "Forged", *row[2:]] if table == "experiments" else row

    forged = edited(dumped(workers, tmp_path / "one.jsonl"), tmp_path / "forged.jsonl", rename)
    with pytest.raises(Difference, match="name is stored as 'Forged'"):
        loaded(elsewhere, forged, replay=False)
    assert hidden(elsewhere.url) == []


def test_nobody_sees_it_before_all_of_it_is_there(workers: Workers, elsewhere: Workers, tmp_path: Path) -> None:
    """While its rows go in and are replayed, another worker finds no experiment; then it finds the whole of it."""
    write_varied(workers, _KEY)
    file = DumpFile(dumped(workers, tmp_path / "one.jsonl"))
    refused = 0

    async def ask() -> None:
        nonlocal refused
        loading = asyncio.create_task(load(elsewhere.contexts[0].database, file, LoadRequest(check_settings)))
        while not loading.done():
            assert await experiment_keys.all_keys(elsewhere.contexts[1].database) in ([], [_KEY])
            try:
                await elsewhere.contexts[1].writer.submit(by_service(_KEY), Ask("x"))
            except ExperimentNotFound:
                refused += 1
        await loading

    elsewhere.run(ask())
    assert refused > 3
    assert elsewhere.replay(_KEY) >= workers.replay(_KEY)


@pytest.mark.process
def test_a_killed_load_is_cleaned_up_and_is_in_nobody_s_way(workers: Workers, new_database: NewDatabase, tmp_path: Path) -> None:
    """Killed half way it stays hidden; the same file can be loaded at once; after a while its rows go, and only they."""
    write_varied(workers, _KEY)
    for _ in range(2):
        workers.submit(_KEY, AskMany([None] * 10_000, by_count=True))
    path, url = dumped(workers, tmp_path / "one.jsonl"), new_database()
    command = [sys.executable, "-m", "service", "experiment", "load", str(path)]
    loading = subprocess.Popen(command, env=os.environ | {"BESTARM_DATABASE_URL": url})
    deadline = time.monotonic() + 120
    # It stands still while it is looked at: however busy the machine is, it is killed where it was seen.
    loading.send_signal(signal.SIGSTOP)
    while not (found := hidden(url)) or found[0][1] < 1_000:
        assert time.monotonic() < deadline
        assert loading.poll() is None
        loading.send_signal(signal.SIGCONT)
        time.sleep(0.01)
        loading.send_signal(signal.SIGSTOP)
    loading.kill()
    loading.wait()
    [(status, events)] = hidden(url)
    assert (status, 1_000 <= events < 20_000) == ("loading", True)
    again = Workers(url)
    assert loaded(again, path, replay=False) == _KEY
    again.run(Deleter(again.contexts[0]).remove_all())
    assert hidden(url) == [(status, events)], "it may still be alive"
    written(url, f"UPDATE experiments SET as_of = as_of - {(LOAD_ABANDONED_SECONDS + 60) * 1_000_000} WHERE status = 'loading'")
    again.run(Deleter(again.contexts[1]).remove_all())
    assert hidden(url) == []
    assert again.submit(_KEY, Ask("x")).assignment is not None
    again.close()


def test_a_load_that_was_taken_for_dead_finds_out(workers: Workers, elsewhere: Workers, tmp_path: Path) -> None:
    """A load that stood still for long is given up by others; when it goes on, it fails and leaves nothing."""
    write_varied(workers, _KEY)
    file = DumpFile(dumped(workers, tmp_path / "one.jsonl"))
    given_up: list[asyncio.Task[None]] = []

    async def give_up() -> None:
        async with elsewhere.contexts[1].database.writing() as connection:
            await connection.exec_driver_sql("UPDATE experiments SET status = 'deleted' WHERE status = 'loading'")

    def stand_still(_done: int, _of: int) -> None:
        if not given_up:
            given_up.append(asyncio.get_running_loop().create_task(give_up()))

    with pytest.raises(Conflict, match="stood still"):
        elsewhere.run(load(elsewhere.contexts[0].database, file, LoadRequest(check_settings, report=stand_still)))
    elsewhere.run(Deleter(elsewhere.contexts[0]).remove_all())
    assert hidden(elsewhere.url) == []
