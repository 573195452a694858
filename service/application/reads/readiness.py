"""Whether the database answers and has a schema that this release may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.storage import migrate

if TYPE_CHECKING:
    from service.storage.database import Database
    from service.storage.schema_compatibility import Schema


async def require_ready(database: Database) -> None:
    """Raise unless the database answers, and is at this release's migration or at a later one that this release may run on."""
    async with database.probing() as connection:
        await migrate.require_usable(connection)


async def schema_of(database: Database) -> Schema:
    """How far the database is, and which releases may use it."""
    async with database.reading() as connection:
        return await migrate.schema_of(connection)
