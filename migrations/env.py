"""Alembic's entry: run the migrations on a connection that the service hands over, or on the configured database."""

from __future__ import annotations

import asyncio

from alembic import context
from sqlalchemy import text
from sqlalchemy.engine import Connection

from service.settings import Settings
from service.storage.database import Database
from service.storage.tables import metadata


def run(connection: Connection) -> None:
    """All pending migrations in one transaction.

    Batch operations on SQLite rebuild tables; with foreign keys on that would delete the rows that point at them.
    """
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        connection.execute(text("PRAGMA foreign_keys=OFF"))
        connection.commit()
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=sqlite, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
    if sqlite:
        connection.execute(text("PRAGMA foreign_keys=ON"))
        connection.commit()


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
