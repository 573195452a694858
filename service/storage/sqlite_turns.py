"""The write lock of a SQLite file, of which there is one: waited for while others take turns at it, not while somebody keeps it.

SQLite queues nobody: who waits looks again and again, and may be out of luck for a while where others write without a pause. That
shows in the number of changes that it counts, and is no reason to give up.
"""

from __future__ import annotations

import sqlite3
import time

from service.errors import DatabaseLocked

# Who was out of luck for so long has waited long enough.
_MOST_SECONDS = 60.0
# The kinds of SQLITE_BUSY differ in what is above this.
_CODE = 0xFF


def begin_writing(connection: sqlite3.Connection) -> None:
    """Begin a transaction with the write lock in hand.

    Raises DatabaseLocked where the connection has waited twice, and nobody wrote anything the second time. (To count changes
    before the first would cost every group as much as its own statements do.)
    """
    gives_up_at, changes = time.monotonic() + _MOST_SECONDS, None
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE").close()
        except sqlite3.OperationalError as failure:
            if failure.sqlite_errorcode & _CODE != sqlite3.SQLITE_BUSY:
                raise
            before, changes = changes, _changes_of_others(connection)
            if changes == before or time.monotonic() > gives_up_at:
                raise DatabaseLocked from failure
        else:
            return


def is_read_only(failure: sqlite3.OperationalError) -> bool:
    """May this connection never write? One that was opened while the file could not be written stays so when it can be again."""
    return failure.sqlite_errorcode & _CODE == sqlite3.SQLITE_READONLY


def _changes_of_others(connection: sqlite3.Connection) -> int:
    """A number that is another one after others have committed."""
    (number,) = connection.execute("PRAGMA data_version").fetchone()
    return int(number)
