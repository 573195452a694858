"""The embedded database is copied whole while others write, and its copy replays."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.application.commands.ask import Ask, AskMany
from service.errors import Conflict, DatabaseUnavailable, InvalidValue
from service.storage.sqlite_backup import back_up, embedded_file
from testing.databases import NewDatabase
from testing.workers import Workers


@pytest.fixture
def workers(sqlite_databases: NewDatabase) -> Iterator[Workers]:
    """Workers on an embedded database with six thousand draws."""
    running = Workers(sqlite_databases())
    running.create("one", [("a", 0.0), ("b", 0.0)])
    for _ in range(6):
        running.submit("one", AskMany([None] * 1_000, by_count=True))
    yield running
    running.close()


def replayed(file: Path) -> int:
    """The number of events in a copy, without difference."""
    workers = Workers(f"sqlite:///{file}")
    try:
        return workers.replay("one")
    finally:
        workers.close()


def test_a_copy_is_of_one_moment_although_others_write(workers: Workers, tmp_path: Path) -> None:
    """A write after every step: the copy ends, has none of them, and replays; the original has them all."""
    source, target = embedded_file(workers.url), tmp_path / "copy.db"
    steps = 0

    def write(_done: int, _of: int) -> None:
        nonlocal steps
        steps += 1
        with closing(sqlite3.connect(source, isolation_level=None)) as other:
            other.execute("UPDATE experiments SET description = description || 'x'")

    before = replayed_description(source)
    assert back_up(source, target, write) == target.stat().st_size
    assert steps >= 2
    assert (replayed_description(target), len(replayed_description(source))) == (before, len(before) + steps)
    assert replayed(target) == 6_001


def replayed_description(file: Path) -> str:
    """What the writes change."""
    with closing(sqlite3.connect(file)) as opened:
        return str(opened.execute("SELECT description FROM experiments").fetchone()[0])


def test_writers_are_not_kept_waiting(workers: Workers, tmp_path: Path) -> None:
    """Asks are answered between the steps of a copy, each of which the copy waits for."""
    source = embedded_file(workers.url)
    asked, copying = threading.Event(), threading.Event()
    drawn: list[int] = []

    def step(_done: int, _of: int) -> None:
        copying.set()
        assert asked.wait(60), "an ask waits for the copy"

    thread = threading.Thread(target=back_up, args=(source, tmp_path / "copy.db", step))
    thread.start()
    assert copying.wait(60)
    answer = workers.submit("one", Ask(None))
    drawn.append(answer.assignment.draw if answer.assignment else 0)
    asked.set()
    thread.join(60)
    assert drawn == [6_001]
    assert replayed(tmp_path / "copy.db") == 6_001


def test_one_file_is_all_there_is_of_it(workers: Workers, tmp_path: Path) -> None:
    """No log beside it, nobody else may read it, and it can be read where nothing can be written."""
    target = tmp_path / "copy.db"
    back_up(embedded_file(workers.url), target, lambda *_: None)
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]
    assert target.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(f"file:{target}?immutable=1", uri=True)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert opened.execute("SELECT count(*) FROM assignments").fetchone() == (6_000,)


def test_an_interrupted_copy_leaves_the_old_one_alone(workers: Workers, tmp_path: Path) -> None:
    """It is there already: refused; allowed to be replaced: only by one that is whole."""
    source, target = embedded_file(workers.url), tmp_path / "copy.db"
    target.write_text("of yesterday")
    with pytest.raises(Conflict, match="there already"):
        back_up(source, target, lambda *_: None)

    def stop(_done: int, _of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(source, target, stop, replace=True)
    assert (target.read_text(), list(tmp_path.iterdir())) == ("of yesterday", [target])
    back_up(source, target, lambda *_: None, replace=True)
    assert replayed(target) == 6_001


def test_a_database_never_replaces_itself(workers: Workers, tmp_path: Path) -> None:
    """By whichever name it is called."""
    source = embedded_file(workers.url)
    link = tmp_path / "link.db"
    link.symlink_to(source)
    for target in (source, link):
        with pytest.raises(Conflict, match="the database itself"):
            back_up(source, target, lambda *_: None, replace=True)
    assert replayed(source) == 6_001


def test_a_damaged_database_makes_no_backup(workers: Workers, tmp_path: Path) -> None:
    """The copy is looked at from end to end before it counts."""
    source, damaged = embedded_file(workers.url), tmp_path / "damaged.db"
    back_up(source, damaged, lambda *_: None)
    with damaged.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(4096 * 8))
    with pytest.raises(DatabaseUnavailable, match="cannot be copied"):
        back_up(damaged, tmp_path / "copy.db", lambda *_: None)
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.db"]


@pytest.mark.parametrize("url", ["postgresql://me@host/db", "sqlite://", "sqlite:///:memory:"])
def test_what_is_no_file_is_refused(url: str) -> None:
    """A PostgreSQL with the names of its own tools."""
    with pytest.raises(InvalidValue, match=r"pg_dump|in memory"):
        embedded_file(url)


def test_a_place_where_nothing_can_be_written_is_named(workers: Workers, tmp_path: Path) -> None:
    """With the reason."""
    with pytest.raises(InvalidValue, match="No such file"):
        back_up(embedded_file(workers.url), tmp_path / "none" / "copy.db", lambda *_: None)
