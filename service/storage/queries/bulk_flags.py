"""The experiments that opted in to be evaluated together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select, text

from service.domain.limits import MOST_BULK_FLAGS
from service.storage.queries.experiment_list import of_these
from service.storage.tables import AUDITED_ONLY, HIDDEN, events, experiments

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


async def states_of_flags(connection: AsyncConnection, among: tuple[str, ...] | None) -> list[tuple[object, ...]]:
    """Each of them with the last thing that people did to it: what is done by traffic leaves it as it is."""
    last = (
        select(func.max(events.c.sequence))
        .where(events.c.experiment_id == experiments.c.id, text(AUDITED_ONLY))
        .scalar_subquery()
    )
    chosen = select(experiments.c.id, experiments.c.key, experiments.c.status, last).where(
        experiments.c.ofrep_bulk, experiments.c.status.not_in(HIDDEN), *of_these(among)
    )
    return [tuple(row) for row in await connection.execute(chosen.order_by(experiments.c.id).limit(MOST_BULK_FLAGS))]


async def bulk_flags(connection: AsyncConnection, among: tuple[str, ...] | None) -> list[str]:
    """The keys of those that a caller may see, oldest first."""
    chosen = select(experiments.c.key).where(experiments.c.ofrep_bulk, experiments.c.status.not_in(HIDDEN), *of_these(among))
    return list((await connection.execute(chosen.order_by(experiments.c.id).limit(MOST_BULK_FLAGS))).scalars())
