"""The embedded database's connection: short results in one trip, long ones as they are asked for, failures by their names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from service.storage.database_url import async_url
from service.storage.sqlite_connection import connecting

_NUMBERS = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most) SELECT i FROM n")


@asynccontextmanager
async def _engine(folder: Path) -> AsyncIterator[AsyncEngine]:
    """An engine as the service makes it, on a file with an empty table."""
    url = async_url(f"sqlite:///{folder / 'bestarm.db'}")
    engine = create_async_engine(url, async_creator=connecting(url, 1.0), pool_size=2, max_overflow=0)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE)"))
    yield engine
    await engine.dispose()


@pytest.mark.parametrize("rows", [1, 63, 64, 199, 200, 201, 399, 400, 5_000])
def test_all_rows_arrive_in_order_however_they_are_fetched(tmp_path: Path, rows: int) -> None:
    """At once, one by one, in parts and streamed: around the number that is read ahead, too."""
    expected, most = list(range(1, rows + 1)), {"most": rows}

    async def study() -> None:
        async with _engine(tmp_path) as engine, engine.connect() as connection:
            assert (await connection.execute(_NUMBERS, most)).scalars().all() == expected
            streamed = await connection.stream(_NUMBERS, most, execution_options={"yield_per": 70})
            assert [row.i async for row in streamed] == expected
            streamed = await connection.stream(_NUMBERS, most)
            assert [row.i for row in await streamed.fetchmany(3)] == expected[:3]
            assert [row.i for row in await streamed.fetchall()] == expected[3:]
            streamed = await connection.stream(_NUMBERS, most)
            first = await streamed.fetchone()
            assert first is not None
            assert first.i == 1
            await streamed.close()
            assert (await connection.execute(text("SELECT 1 WHERE 0"))).all() == []

    asyncio.run(study())


def test_rows_written_are_counted_and_their_ids_known(tmp_path: Path) -> None:
    """As with the driver's own cursors: one, several at once, and with RETURNING."""

    async def study() -> None:
        async with _engine(tmp_path) as engine, engine.connect() as connection:
            one = await connection.execute(text("INSERT INTO things (name) VALUES ('a')"))
            assert (one.rowcount, one.lastrowid) == (1, 1)
            many = await connection.execute(text("INSERT INTO things (name) VALUES (:name)"), [{"name": "b"}, {"name": "c"}])
            assert many.rowcount == 2
            given = await connection.execute(text("INSERT INTO things (name) VALUES ('d'), ('e') RETURNING id"))
            assert given.scalars().all() == [4, 5]
            changed = await connection.execute(text("UPDATE things SET name = name || '!' WHERE id > 1"))
            assert changed.rowcount == 4

    asyncio.run(study())


def test_what_fails_is_named_as_ever_and_leaves_a_connection_that_works(tmp_path: Path) -> None:
    """A row twice and a statement that is none."""

    async def study() -> None:
        async with _engine(tmp_path) as engine, engine.connect() as connection:
            await connection.execute(text("INSERT INTO things (name) VALUES ('a')"))
            with pytest.raises(IntegrityError):
                await connection.execute(text("INSERT INTO things (name) VALUES ('a')"))
            with pytest.raises(OperationalError):
                await connection.execute(text("SELECT nothing FROM nowhere"))
            assert (await connection.execute(text("SELECT count(*) FROM things"))).scalar_one() == 1

    asyncio.run(study())


def test_whoever_goes_while_rows_come_leaves_nothing_open(tmp_path: Path) -> None:
    """Cancelled at any moment of a long read, the connections serve on and hold no lock: the table can be dropped."""

    async def read(engine: AsyncEngine) -> None:
        async with engine.connect() as connection:
            found = await connection.stream(_NUMBERS, {"most": 1_000_000}, execution_options={"yield_per": 100})
            async for _ in found:
                pass

    async def study() -> None:
        async with _engine(tmp_path) as engine:
            for patience in range(12):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(read(engine), patience / 1_000)
            async with engine.begin() as connection:
                await connection.execute(text("DROP TABLE things"))

    asyncio.run(study())


def test_a_long_result_is_not_read_before_it_is_asked_for(tmp_path: Path) -> None:
    """The first rows of a result without end are there at once."""
    endless = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")

    async def study() -> None:
        async with _engine(tmp_path) as engine, engine.connect() as connection:
            streamed = await connection.stream(endless, execution_options={"yield_per": 10})
            assert [row.i for row in await streamed.fetchmany(250)] == list(range(1, 251))
            await streamed.close()

    asyncio.run(study())
