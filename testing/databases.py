"""Databases with the newest schema, as the migrations make it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
