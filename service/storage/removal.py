"""The end of an experiment: it is marked at once, and its rows go chunk by chunk.

Marked, it has another status, a tombstone for a key and a new version. So no list shows it, no route finds it, its own key is
free again, and whatever a worker decided on what it remembers of it is not written: from then on its rows only become fewer.
The row in `experiments` goes last; as long as it is there, some worker goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Table, delete, literal, select, tuple_, update

from service.errors import ExperimentNotFound
from service.storage import settings_rows
from service.storage.tables import DELETED, experiments, metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import Progress

    Row = tuple[Any, ...]
    Conditions = Sequence[ColumnElement[bool]]


class Place(NamedTuple):
    """Where a chunk ended: in which table, and the primary key of the last row that went, without the experiment."""

    table: int = 0
    row: tuple[Any, ...] | None = None


# Every table whose rows belong to experiments; a new one joins by itself.
TABLES: tuple[Table, ...] = tuple(table for table in metadata.sorted_tables if "experiment_id" in table.columns)


async def locked(connection: AsyncConnection, key: str) -> Progress:
    """The experiment, as it is until this transaction ends."""
    found = await connection.execute(select(experiments).where(experiments.c.key == key).with_for_update())
    row = found.mappings().first()
    if row is None:
        raise ExperimentNotFound(key)
    return settings_rows.progress_from(row)


async def mark(connection: AsyncConnection, progress: Progress) -> None:
    """It is gone for everybody, now. No route's key can hold a slash, so none can name the tombstone."""
    experiment = progress.experiment
    tombstone = f"{experiment.id}/{DELETED}"
    marked = update(experiments).where(experiments.c.id == experiment.id)
    await connection.execute(marked.values(key=tombstone, status=DELETED, version=progress.version + 1))


async def marked(connection: AsyncConnection) -> Sequence[int]:
    """The ids of those that have rows left."""
    wanted = select(experiments.c.id).where(experiments.c.status == DELETED).order_by(experiments.c.id)
    return (await connection.execute(wanted)).scalars().all()


async def is_ours(connection: AsyncConnection, experiment_id: int) -> bool:
    """May this transaction remove rows of it? Not while another worker does, nor once all are gone."""
    left = select(experiments.c.id).where(experiments.c.id == experiment_id, experiments.c.status == DELETED)
    return (await connection.execute(left.with_for_update(skip_locked=True))).scalar_one_or_none() is not None


async def remove_chunk(connection: AsyncConnection, experiment_id: int, place: Place, limit: int) -> Place | None:
    """Remove the next rows behind this place, table after table; at the end the experiment's own row, and None.

    A place spares the search for the first row that is left, which on PostgreSQL would pass all that went before.
    """
    for number in range(place.table, len(TABLES)):
        removed, last = await remove_rows(connection, TABLES[number], experiment_id, place.row, limit)
        if removed == limit:
            return Place(number, last)
        limit -= removed
        place = Place(number + 1)
    await connection.execute(delete(experiments).where(experiments.c.id == experiment_id))
    return None


async def remove_rows(
    connection: AsyncConnection, table: Table, experiment_id: int, last: Row | None, limit: int
) -> tuple[int, Row | None]:
    """How many went of those behind this row, in the order of the primary key, and the last of them."""
    if not _names_of(table):  # one row for an experiment
        return (await connection.execute(delete(table).where(table.c.experiment_id == experiment_id))).rowcount, None
    found = await next_rows(connection, table, experiment_id, last, limit)
    if not found:
        return 0, None
    await remove_range(connection, table, experiment_id, last, found[-1])
    return len(found), found[-1]


async def next_rows(
    connection: AsyncConnection, table: Table, experiment_id: int, last: Row | None, limit: int, *, only: Conditions = ()
) -> list[Row]:
    """The rows behind this one, at most so many, in the order of the primary key, and only such as are named."""
    names = _names_of(table)
    behind = _behind(table, experiment_id, last)
    found = await connection.execute(select(*names).where(*behind, *only).order_by(*names).limit(limit))
    return [tuple(row) for row in found]


async def remove_range(
    connection: AsyncConnection, table: Table, experiment_id: int, last: Row | None, until: Row, *, only: Conditions = ()
) -> None:
    """Remove what lies behind a row up to another one, and only such as are named."""
    names = _names_of(table)
    inside = [*_behind(table, experiment_id, last), _row(names) <= _row_of(names, until)]
    await connection.execute(delete(table).where(*inside, *only))


def _names_of(table: Table) -> list[ColumnElement[Any]]:
    """What its rows are named by, beside the experiment."""
    return [column for column in table.primary_key.columns if column.name != "experiment_id"]


def _behind(table: Table, experiment_id: int, last: Row | None) -> list[ColumnElement[bool]]:
    names = _names_of(table)
    behind: list[ColumnElement[bool]] = [table.c.experiment_id == experiment_id]
    return behind if last is None else [*behind, _row(names) > _row_of(names, last)]


def _row(columns: Sequence[ColumnElement[Any]]) -> ColumnElement[Any]:
    return columns[0] if len(columns) == 1 else tuple_(*columns)


def _row_of(columns: Sequence[ColumnElement[Any]], values: tuple[Any, ...]) -> ColumnElement[Any]:
    return _row([literal(value, column.type) for value, column in zip(values, columns, strict=True)])
