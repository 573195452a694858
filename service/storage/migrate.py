"""Bring a database to the newest schema, and tell whether it is there. The migrations ship inside the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from service.storage.database import Database, named_failures

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

# Any number will do, as long as all workers that migrate at once use the same.
_MIGRATION_LOCK = 0xBE57A53


def _config() -> Config:
    package = Path(__file__).parents[1]
    shipped = package / "migrations"
    config = Config()
    config.set_main_option("script_location", str(shipped if shipped.is_dir() else package.parent / "migrations"))
    return config


@cache
def head() -> str:
    """The newest revision that this release knows. Read once: a probe must not read the migrations' files every time."""
    newest = ScriptDirectory.from_config(_config()).get_current_head()
    if newest is None:
        raise RuntimeError("The package has no migrations in it.")
    return newest


async def current(connection: AsyncConnection) -> str | None:
    """The revision that the database is at; None for an empty one."""
    return await connection.run_sync(lambda sync: MigrationContext.configure(sync).get_current_revision())


async def migrate(database: Database) -> None:
    """Run what is missing. Safe to call from several processes at once: one runs, the others wait and find it done."""

    def upgrade(connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _MIGRATION_LOCK})
            connection.commit()
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _MIGRATION_LOCK})
            connection.commit()

    unhurried = Database(database.url, pool_size=1, read_seconds=None)
    try:
        connection = await unhurried.connect()
        try:
            with named_failures():
                await connection.execution_options(immediate=True)
                await connection.run_sync(upgrade)
        finally:
            await connection.close()
    finally:
        await unhurried.close()
