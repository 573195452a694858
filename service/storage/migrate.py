"""Bring a database to the newest schema, and tell whether this release may use it. The migrations ship inside the package.

Alembic is loaded where there is something to migrate: each process of the service looks how far its database is, and few migrate.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import column, inspect, select, table, text
from sqlalchemy.exc import DBAPIError

from service import __version__
from service.errors import DatabaseNotMigrated
from service.storage import schema_compatibility
from service.storage.database import Database, named_failures
from service.storage.schema_compatibility import Schema

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

# Any number will do, as long as all workers that migrate at once use the same.
_MIGRATION_LOCK = 0xBE57A53
# A migration that waits for a table, behind an export or a dump, keeps all others who write to it waiting behind itself. So it
# waits shortly, lets them go on, and tries again, for ten minutes in all.
_LOCK_SECONDS, _PAUSE_SECONDS, _MOST_TRIES = 2, 3, 120
_LOCKED = "55P03"
# Alembic's own.
_VERSION = table("alembic_version", column("version_num"))


def _folder() -> Path:
    package = Path(__file__).parents[1]
    shipped = package / "migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"


@cache
def _known() -> tuple[str, ...]:
    """The revisions of this release, the newest first: their files begin with them.

    Read once: a probe must not read the folder every time.
    """
    files = (_folder() / "versions").glob("[0-9]*_*.py")
    found = tuple(sorted((file.name.partition("_")[0] for file in files), reverse=True))
    if not found:
        raise RuntimeError("The package has no migrations in it.")
    return found


def head() -> str:
    """The newest revision that this release knows."""
    return _known()[0]


async def current(connection: AsyncConnection) -> str | None:
    """The revision that the database is at; None for an empty one."""
    return await connection.run_sync(_current)


async def schema_of(connection: AsyncConnection) -> Schema:
    """How far the database is, and which releases may use it."""
    return await connection.run_sync(lambda sync: schema_compatibility.recorded(sync, _current(sync)))


async def require_usable(connection: AsyncConnection) -> None:
    """Raise unless this release may use the database: it is as far as the release, or further in a way that leaves it room."""
    if await current(connection) != head():
        _check(await schema_of(connection))


def _current(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSION.name):
        return None
    return connection.execute(select(_VERSION.c.version_num)).scalar()


def _check(found: Schema) -> None:
    """Raise a sentence on what is at another revision than this release, unless the release may use it."""
    if found.revision is None or found.revision in _known():
        raise DatabaseNotMigrated(
            f"The database is at migration {found.revision or 'none'}, this release needs {head()}: run `bestarm migrate`."
        )
    ours = f"this one ({__version__}) is at {head()}"
    if found.compatible_with is None:
        raise DatabaseNotMigrated(
            f"The database is at migration {found.revision}, which another release made and which does not say that others may "
            f"use it; {ours}: run the release that made it."
        )
    if found.compatible_with > head():
        raise DatabaseNotMigrated(
            f"The database is at migration {found.revision}, for releases at {found.compatible_with} or later; {ours}: "
            "run a newer release."
        )


def _upgrade(connection: Connection) -> None:
    """Run what is missing, all in one transaction on PostgreSQL, when nobody holds what it needs."""
    from alembic import command  # noqa: PLC0415 - it and its templates take a tenth of a second: see above
    from alembic.config import Config  # noqa: PLC0415 - likewise

    config = Config()
    config.set_main_option("script_location", str(_folder()))
    config.attributes["connection"] = connection
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET lock_timeout = '{_LOCK_SECONDS}s'"))
        connection.commit()
    for turn in range(1, _MOST_TRIES + 1):
        try:
            command.upgrade(config, "head")
        except DBAPIError as failure:
            connection.rollback()
            if turn == _MOST_TRIES or getattr(failure.orig, "sqlstate", None) != _LOCKED:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


async def migrate(database: Database) -> Schema:
    """Run what is missing; how far the database is then. One that is further already is left alone, if this release may use it.

    Safe to call from several processes at once: one runs, the others wait and find it done.
    """

    def upgrade(connection: Connection) -> Schema:
        is_shared = connection.dialect.name == "postgresql"
        if is_shared:
            connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _MIGRATION_LOCK})
            connection.commit()
        found = schema_compatibility.recorded(connection, _current(connection))
        if found.revision is not None and found.revision not in _known():
            _check(found)
        elif found.revision != head() or found.compatible_with is None:
            connection.rollback()
            _upgrade(connection)
        schema = schema_compatibility.recorded(connection, _current(connection))
        connection.rollback()
        if is_shared:
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _MIGRATION_LOCK})
            connection.commit()
        return schema

    unhurried = Database(database.url, pool_size=1, read_seconds=None)
    try:
        connection = await unhurried.connect()
        try:
            with named_failures():
                await connection.execution_options(immediate=True)
                return await connection.run_sync(upgrade)
        finally:
            await connection.close()
    finally:
        await unhurried.close()
