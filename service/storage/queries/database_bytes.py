"""How much room the database takes on its disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_BYTES = {
    "postgresql": "SELECT pg_database_size(current_database())",
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
}


async def database_bytes(connection: AsyncConnection) -> int:
    """All tables and indexes with what is free in them; without the log that is written ahead."""
    found = await connection.execute(text(_BYTES[connection.dialect.name]))
    return int(found.scalar_one())
