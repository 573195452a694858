"""The write lock of a SQLite file: who takes turns is waited for, who keeps it is not."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.errors import DatabaseLocked
from service.storage.sqlite_turns import begin_writing

_WAIT_SECONDS = 0.5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with a table."""
    path = tmp_path / "turns.db"
    with closing(_connected(path)) as rows:
        rows.execute("PRAGMA journal_mode=WAL")
        rows.execute("CREATE TABLE things (number INTEGER)")
    return path


@pytest.fixture
def waiting(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection that waits for a while."""
    with closing(_connected(file)) as connection:
        yield connection


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)


def test_who_keeps_it_is_not_waited_for(file: Path, waiting: sqlite3.Connection) -> None:
    """The connection's time, twice; afterwards the lock is taken as if nothing had been."""
    with closing(_connected(file)) as keeper:
        keeper.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(DatabaseLocked):
            begin_writing(waiting)
        assert _WAIT_SECONDS <= time.monotonic() - began < 10 * _WAIT_SECONDS
        assert not waiting.in_transaction
        keeper.execute("ROLLBACK")
    begin_writing(waiting)
    assert waiting.in_transaction


def test_who_is_out_of_luck_for_long_gets_its_turn(file: Path, waiting: sqlite3.Connection) -> None:
    """Another one that has it nearly all the time, and commits, is no reason to give up."""
    tired = threading.Event()
    busy = threading.Event()

    def write() -> None:
        with closing(_connected(file)) as other:
            other.execute("PRAGMA synchronous=OFF")  # a slow disk is not what this is about
            until = time.monotonic() + 5 * _WAIT_SECONDS
            while time.monotonic() < until and not tired.is_set():
                other.execute("BEGIN IMMEDIATE")
                busy.set()
                other.execute("INSERT INTO things VALUES (1)")
                time.sleep(_WAIT_SECONDS / 10)
                other.execute("COMMIT")

    writing = threading.Thread(target=write)
    writing.start()
    assert busy.wait(30)
    try:
        begin_writing(waiting)
        waiting.execute("ROLLBACK")
    finally:
        tired.set()
        writing.join()


def test_what_is_no_lock_is_told_as_it_is(tmp_path: Path) -> None:
    """A file that cannot be written has nobody to wait for."""
    path = tmp_path / "read only.db"
    with closing(_connected(path)) as rows:
        rows.execute("CREATE TABLE things (number INTEGER)")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)) as reading:
        begun_or_refused: list[str] = []
        try:
            begin_writing(reading)
            reading.execute("INSERT INTO things VALUES (1)")
        except sqlite3.OperationalError as failure:
            begun_or_refused.append(str(failure))
        assert begun_or_refused == ["attempt to write a readonly database"]
