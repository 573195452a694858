"""All rows of one experiment, out of one database and into another.

On its way in an experiment has a status of its own and a tombstone for a key, as a deleted one has: nobody finds it before all of
it is there. Meanwhile `as_of` says when the load was last at it; one that was killed is given up after a while and goes as a
deleted one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
from sqlalchemy import BigInteger, Boolean, Double, Integer, LargeBinary, String, Table, insert, select, update
from sqlalchemy.exc import IntegrityError

from service.domain.limits import LOAD_ABANDONED_SECONDS
from service.errors import Conflict, ExperimentExists
from service.randomness import random_63_bits
from service.storage import removal
from service.storage.row_shapes import SHAPES, Shape
from service.storage.tables import DELETED, LOADING, arms, experiments

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

# The experiment's own row, its arms, then the rows of every table that belongs to experiments, unless its `info` says otherwise.
_TABLES: dict[str, Table] = {
    str(table.name): table for table in (experiments, arms, *removal.TABLES) if table.info.get("copied", True)
}
TABLES = tuple(_TABLES)
# Rows that are held in memory at a time; fewer where each may be large.
_ROWS_AT_ONCE = 2_000
_LARGE_ROWS_AT_ONCE = 20
# SQLAlchemy's types, the special ones before those that they are made of, and what a column of them holds.
_HELD: tuple[tuple[type[Any], Any], ...] = (
    (Boolean, bool),
    (BigInteger, int),
    (Integer, int),
    (Double, float),
    (LargeBinary, bytes),
    (String, str),
)


def columns_of(table: str) -> list[str]:
    """What of its rows is the same in every database: all columns but the experiment's id."""
    own_id = "id" if table == experiments.name else "experiment_id"
    return [str(column.name) for column in _TABLES[table].columns if column.name != own_id]


def shape_of(table: str) -> type[Shape]:
    """What its rows may hold; of a table that nobody has described, what its columns say."""
    if table in SHAPES:
        return SHAPES[table]
    fields = []
    for name in columns_of(table):
        column = _TABLES[table].columns[name]
        held = next(held for kind, held in _HELD if isinstance(column.type, kind))
        fields.append((name, held | None if column.nullable else held))
    return cast("type[Shape]", msgspec.defstruct(f"{table}_shape", fields, bases=(Shape,)))


async def rows_of(connection: AsyncConnection, name: str, experiment_id: int) -> AsyncIterator[Sequence[Sequence[Any]]]:
    """All rows that the experiment has in a table, in the order of the primary key, some at a time."""
    table = _TABLES[name]
    own_id = experiments.c.id if table is experiments else table.c.experiment_id
    wanted = select(*(table.columns[column] for column in columns_of(name))).where(own_id == experiment_id)
    large = any(isinstance(column.type, LargeBinary) for column in table.columns)
    at_once = _LARGE_ROWS_AT_ONCE if large else _ROWS_AT_ONCE
    found = await connection.stream(wanted.order_by(*table.primary_key.columns), execution_options={"yield_per": at_once})
    async for rows in found.partitions(at_once):
        yield rows


async def begin(connection: AsyncConnection, row: dict[str, Any], now: int) -> tuple[int, str]:
    """Store the experiment's own row, hidden; its new id, and the tombstone that it has for a key."""
    taken = select(experiments.c.id).where(experiments.c.key == row["key"])
    if (await connection.execute(taken)).scalar_one_or_none() is not None:
        raise ExperimentExists(row["key"])
    tombstone = f"{random_63_bits():x}/{LOADING}"
    hidden = row | {"key": tombstone, "status": LOADING, "as_of": now}
    stored = await connection.execute(insert(experiments).values(hidden).returning(experiments.c.id))
    return stored.scalar_one(), tombstone


async def add_rows(connection: AsyncConnection, table: str, experiment_id: int, rows: Iterable[tuple[Any, ...]]) -> None:
    """Store rows whose columns are those of `columns_of`."""
    names = columns_of(table)
    given = [dict(zip(names, row, strict=True)) | {"experiment_id": experiment_id} for row in rows]
    await connection.execute(insert(_TABLES[table]), given)


async def touch(connection: AsyncConnection, experiment_id: int, now: int) -> None:
    """Say that the load is still at it, and keep others from giving it up before this transaction ends."""
    ours = update(experiments).where(experiments.c.id == experiment_id, experiments.c.status == LOADING).values(as_of=now)
    if (await connection.execute(ours)).rowcount != 1:
        raise Conflict("The load stood still for so long that what was there of it has been removed.")


async def publish(connection: AsyncConnection, experiment_id: int, row: dict[str, Any]) -> None:
    """It is there for everybody, as it was: its key is guarded by the database."""
    await touch(connection, experiment_id, row["as_of"])
    shown = {name: row[name] for name in ("key", "status", "as_of")}
    try:
        await connection.execute(update(experiments).where(experiments.c.id == experiment_id).values(shown))
    except IntegrityError as taken:
        raise ExperimentExists(row["key"]) from taken


async def give_up(connection: AsyncConnection, experiment_id: int) -> None:
    """Let its rows go as those of a deleted experiment do."""
    ours = experiments.c.id == experiment_id, experiments.c.status == LOADING
    await connection.execute(update(experiments).where(*ours).values(status=DELETED))


def _abandoned(now: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Nobody has been loading it for a while."""
    return experiments.c.status == LOADING, experiments.c.as_of < now - LOAD_ABANDONED_SECONDS * 1_000_000


async def are_abandoned(connection: AsyncConnection, now: int) -> bool:
    """Is there any that nobody has been loading for a while?"""
    return (await connection.execute(select(experiments.c.id).where(*_abandoned(now)).limit(1))).first() is not None


async def give_up_abandoned(connection: AsyncConnection, now: int) -> Sequence[int]:
    """Let the rows of all of those go; their ids."""
    gone = update(experiments).where(*_abandoned(now)).values(status=DELETED).returning(experiments.c.id)
    return list((await connection.execute(gone)).scalars())
