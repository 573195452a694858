"""Whether the database answers and has the newest schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.errors import DatabaseNotMigrated
from service.storage import migrate

if TYPE_CHECKING:
    from service.storage.database import Database


async def require_ready(database: Database) -> None:
    """Raise unless the database answers and is at the newest migration."""
    async with database.reading() as connection:
        found = await migrate.current(connection)
    if found != migrate.head():
        raise DatabaseNotMigrated(
            f"The database is at migration {found or 'none'}, this release needs {migrate.head()}: run `bestarm migrate`."
        )
