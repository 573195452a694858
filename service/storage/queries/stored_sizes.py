"""How large an experiment is, before anything large of it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ScalarSelect, bindparam, case, func, select

from service.domain.limits import FEW_ARMS, LARGE_VALUES_BYTES
from service.errors import ExperimentNotFound
from service.storage.tables import arms, experiments

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True)
class StoredSize:
    """The number of arms; and of few arms the length of their values, together and of the longest. Of many it is not counted."""

    arms: int
    values: int | None
    longest_value: int | None

    @property
    def is_large(self) -> bool:
        """Would it keep the event loop from others to read or to write all of it?"""
        return self.values is None or self.values > LARGE_VALUES_BYTES


def size_columns() -> list[ColumnElement[Any]]:
    """The columns of a size, of the experiment in the statement around them."""
    last = _of_its_arms(func.max(arms.c.position))
    few = last < FEW_ARMS
    lengths = func.coalesce(func.sum(func.length(arms.c.value)), 0), func.coalesce(func.max(func.length(arms.c.value)), 0)
    counted = [case((few, _of_its_arms(length)), else_=None) for length in lengths]
    return [last.label("last_position"), counted[0].label("values_length"), counted[1].label("longest_value")]


def size_from(row: Any) -> StoredSize:  # noqa: ANN401 - a row of any statement with these columns
    """The size that a row tells."""
    return StoredSize(row["last_position"] + 1, row["values_length"], row["longest_value"])


async def size_by_key(connection: AsyncConnection, key: str) -> StoredSize:
    """The size of the experiment with this key."""
    row = (await connection.execute(_BY_KEY, {"wanted": key})).mappings().first()
    if row is None:
        raise ExperimentNotFound(key)
    return size_from(row)


def _of_its_arms(column: ColumnElement[Any]) -> ScalarSelect[Any]:
    return select(column).where(arms.c.experiment_id == experiments.c.id).correlate(experiments).scalar_subquery()


# Made once: to make it of its expressions costs more than to send it.
_BY_KEY = select(*size_columns()).where(experiments.c.key == bindparam("wanted"))
