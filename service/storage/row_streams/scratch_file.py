"""What an export must set aside: more than fits into its memory, and nothing that may outlive it."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def scratch_file(columns: str) -> Iterator[sqlite3.Connection]:
    """A database of one table, `kept`, until the block ends.

    The empty name is SQLite's word for one without a name: two megabytes of memory, then a file in the folder for temporary ones
    that is unlinked as it is made. The process may die as it likes.
    """
    opened = sqlite3.connect("", isolation_level=None)
    try:
        opened.row_factory = sqlite3.Row
        for setting in ("journal_mode=OFF", "synchronous=OFF"):
            opened.execute(f"PRAGMA {setting}").close()
        opened.execute(f"CREATE TABLE kept ({columns})").close()
        yield opened
    finally:
        opened.close()
