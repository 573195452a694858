"""A SQLite file that cannot be written for a while can be written afterwards, by connections from that time, too."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from service.errors import DatabaseUnavailable
from service.storage.database import Database
from service.storage.groups.sqlite import SqliteGroups
from testing.databases import migrate_now
from testing.small_disk import SmallDisk

pytestmark = pytest.mark.process
_WRITE = "DELETE FROM experiments WHERE false"


@contextmanager
def _immutable(file: Path) -> Iterator[None]:
    """To root, too."""
    subprocess.run(["chattr", "+i", file], check=True)  # noqa: S607 - of the system
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", file], check=True)  # noqa: S607 - of the system


async def _write_in_group(database: Database) -> None:
    groups = database.groups
    assert isinstance(groups, SqliteGroups)
    await groups.run(lambda open_: open_.execute(_WRITE).close())


async def _write_by_the_pool(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(text(_WRITE))


@pytest.mark.parametrize("write", [_write_in_group, _write_by_the_pool])
def test_who_opened_it_while_it_was_read_only_writes_again(write: Callable[[Database], Awaitable[None]]) -> None:
    """The connection of groups, and those of the pool."""

    async def study(file: Path) -> None:
        database = Database(f"sqlite:///{file}")
        try:
            with _immutable(file):
                for _ in range(2):
                    with pytest.raises(DatabaseUnavailable):
                        await write(database)
            await write(database)
        finally:
            await database.close()

    with SmallDisk(16 * 1024 * 1024) as disk:
        file = disk.folder / "bestarm.db"
        migrate_now(f"sqlite:///{file}")
        asyncio.run(study(file))
