"""Databases with the newest schema, as the migrations make it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import TypeAlias

from service.storage.database import Database
from service.storage.migrate import migrate

NewDatabase: TypeAlias = Callable[[], str]
"""Makes an empty, migrated database at every call; its URL."""


def migrate_now(url: str) -> None:
    """Bring a database to the newest schema, in an event loop of its own."""

    async def run() -> None:
        database = Database(url)
        await migrate(database)
        await database.close()

    asyncio.run(run())


def keep_writers_waiting(sqlite_url: str, seconds: float) -> None:
    """Hold the write lock of a SQLite file for so long."""
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None, timeout=10)) as keeper:
        keeper.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        keeper.execute("ROLLBACK")
