"""Alembic's entry: run the migrations on a connection that the service hands over, or on the configured database."""

from __future__ import annotations

import asyncio

from alembic import context
from sqlalchemy.engine import Connection

from service.settings import Settings
from service.storage import schema_compatibility
from service.storage.database import Database
from service.storage.tables import metadata


def run(connection: Connection) -> None:
    """All pending migrations in one transaction, one process at a time.

    Alembic takes SQLite for a database whose tables cannot be changed in a transaction and would commit after each migration, so
    that two processes could take turns. Here the transaction is ours, and it holds the write lock from the beginning.
    """
    if connection.dialect.name == "sqlite":
        connection = connection.execution_options(immediate=True)
        _switch_foreign_keys(connection, "OFF")
    with connection.begin():
        context.configure(
            connection=connection,
            target_metadata=metadata,
            render_as_batch=connection.dialect.name == "sqlite",
            compare_type=True,
            include_name=_is_of_ours,
        )
        context.run_migrations()
        schema_compatibility.record(connection, context.script, context.get_context().get_current_revision())
    if connection.dialect.name == "sqlite":
        _switch_foreign_keys(connection, "ON")


def _is_of_ours(name: str | None, kind: str, _: object) -> bool:
    """Is it for `alembic check` to compare? The record of who may use the schema stands beside it, as alembic's own table."""
    return kind != "table" or name != schema_compatibility.TABLE


def _switch_foreign_keys(connection: Connection, switch: str) -> None:
    """Batch operations rebuild tables; with foreign keys on that would delete the rows that point at them.

    SQLite ignores the switch inside a transaction, so it goes past SQLAlchemy, which would begin one.
    """
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA foreign_keys={switch}")
    cursor.close()


async def run_on_configured_database() -> None:
    """For the `alembic` command itself."""
    database = Database(Settings().database_url)
    async with database.engine.connect() as connection:
        await connection.run_sync(run)
    await database.close()


handed_over: Connection | None = context.config.attributes.get("connection")
if handed_over is None:
    asyncio.run(run_on_configured_database())
else:
    run(handed_over)
