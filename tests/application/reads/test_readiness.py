"""What a release may run on, and the sentence for everything else."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from service import __version__
from service.application.reads.readiness import require_ready, schema_of
from service.errors import DatabaseNotMigrated, DatabaseUnavailable
from service.storage import database
from service.storage.database import Database
from service.storage.migrate import head, migrate
from service.storage.schema_compatibility import TABLE, Schema
from testing.databases import NewDatabase

_UNSAID = "The database is at migration 9002, which another release made and which does not say that others may use it; "
_OURS = f"this one ({__version__}) is at {head()}"
_UNSAID += f"{_OURS}: run the release that made it."


def _at(url: str, revision: str, record: tuple[str, str] | None) -> None:
    """Let a database say that it is at a revision, and of which one its record is."""
    with closing(sqlite3.connect(Path(url.removeprefix("sqlite:///")))) as rows, rows:
        rows.execute("UPDATE alembic_version SET version_num = ?", [revision])
        rows.execute(f"DELETE FROM {TABLE}")
        if record is not None:
            rows.execute(f"INSERT INTO {TABLE} VALUES (?, ?)", record)


def _both(url: str) -> Schema:
    """What a service and what `bestarm migrate` say; they must agree."""

    async def run(database: Database) -> Schema:
        try:
            await require_ready(database)
        except DatabaseNotMigrated as refused:
            if "run `bestarm migrate`" not in str(refused):
                with pytest.raises(DatabaseNotMigrated, match=re.escape(str(refused))):
                    await migrate(database)
            raise
        assert await migrate(database) == await schema_of(database)
        return await schema_of(database)

    async def run_and_close() -> Schema:
        database = Database(url)
        try:
            return await run(database)
        finally:
            await database.close()

    return asyncio.run(run_and_close())


@pytest.mark.parametrize("record", [(head(), head()), None], ids=["recorded", "migrated by a release that kept no record"])
def test_its_own_migration_is_enough(sqlite_databases: NewDatabase, record: tuple[str, str] | None) -> None:
    """Whatever is written down."""
    url = sqlite_databases()
    _at(url, head(), record)
    assert _both(url).revision == head()


def test_a_later_one_that_leaves_room(sqlite_databases: NewDatabase) -> None:
    """It is used, and left as it is."""
    url = sqlite_databases()
    _at(url, "9001", ("9001", head()))
    assert _both(url) == Schema("9001", head())


@pytest.mark.parametrize(
    ("revision", "record", "sentence"),
    [
        ("0003", ("0003", "0003"), f"The database is at migration 0003, this release needs {head()}: run `bestarm migrate`."),
        (
            "9002",
            ("9002", "9002"),
            f"The database is at migration 9002, for releases at 9002 or later; {_OURS}: run a newer release.",
        ),
        (
            "9002",
            ("9001", head()),
            _UNSAID,
        ),
    ],
    ids=["earlier", "contracted", "not recorded"],
)
def test_everything_else_is_refused(sqlite_databases: NewDatabase, revision: str, record: tuple[str, str], sentence: str) -> None:
    """In one sentence that says what to do."""
    url = sqlite_databases()
    _at(url, revision, record)
    with pytest.raises(DatabaseNotMigrated) as refused:
        _both(url)
    assert str(refused.value) == sentence


def test_a_probe_does_not_wait_for_ever_for_one_that_hangs(sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that says nothing keeps the first of them; the others, and what is measured, say that it does not answer."""
    monkeypatch.setattr(database, "_POOL_SECONDS", 0.1)

    async def run() -> None:
        opened = Database(f"sqlite:///{sqlite_template}")
        async with opened.probing():
            with pytest.raises(DatabaseUnavailable):
                await require_ready(opened)
        await require_ready(opened)
        await opened.close()

    asyncio.run(run())
