"""A copy of the embedded database while it is in use, by SQLite's own backup.

The backup begins anew whenever somebody else has written between two of its steps, and beside steady traffic would never end. So
the connection that it reads from stays in one read transaction: it sees the database as it was when the copy began, and keeps
nobody from writing. What is written meanwhile waits in the write-ahead log.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from service.errors import Conflict, DatabaseUnavailable, InvalidValue
from service.storage.database_url import async_url
from service.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable

# A megabyte a step.
_PAGES_A_STEP = 256
_BUSY_SECONDS = 60.0


def embedded_file(url: str) -> Path:
    """The file of the embedded database; another database has its own tools."""
    parsed = async_url(url)
    if parsed.get_backend_name() != "sqlite":
        raise InvalidValue(
            "/database_url", "This is a PostgreSQL, whose own tools back it up: pg_dump, or pg_basebackup (docs/backup.md)."
        )
    if not parsed.database or parsed.database == ":memory:":
        raise InvalidValue("/database_url", "A database in memory cannot be backed up.")
    return Path(parsed.database).absolute()


def back_up(source: Path, target: Path, report: Callable[[int, int], None], *, replace: bool = False) -> int:
    """Copy the database into a file that is there whole or not at all; its size. `report` is told of the pages that are done."""
    if target.exists() and source.samefile(target):
        raise Conflict(f"{target} is the database itself.")
    try:
        with whole_file(target, replace=replace) as part:
            try:
                _copy(source, part, report)
            finally:
                for left in ("-journal", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        Path(f"{part}{left}").unlink()
    except (sqlite3.Error, OSError) as trouble:
        raise DatabaseUnavailable(f"{source} cannot be copied to {target}.") from trouble
    return target.stat().st_size


def _copy(source: Path, part: Path, report: Callable[[int, int], None]) -> None:
    """All pages of one snapshot, and a look at the copy from end to end."""
    with (
        closing(sqlite3.connect(source, timeout=_BUSY_SECONDS, isolation_level=None)) as read,
        closing(sqlite3.connect(part, isolation_level=None)) as written,
    ):
        read.execute("BEGIN")
        read.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        read.backup(written, pages=_PAGES_A_STEP, progress=lambda _, left, of: report(of - left, of))
        read.execute("ROLLBACK")
        written.execute("PRAGMA journal_mode=DELETE").fetchone()  # one file, which may be kept where nothing can be written
        found = [row[0] for row in written.execute("PRAGMA integrity_check").fetchall()]
        if found != ["ok"]:
            raise sqlite3.DatabaseError(f"The copy is damaged: {found[0]}")
