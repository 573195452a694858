"""Events that an operator's command adds to a history past the engine, under the experiment's lock.

The ledgers of the workers are behind from then on, and are read anew before anything else is decided on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, update

from service.domain import Event
from service.storage import traffic_rows
from service.storage.tables import events, experiments

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import EventKind, Json, Progress


async def append(
    connection: AsyncConnection,
    progress: Progress,
    kind: EventKind,
    details: dict[str, Json],
    now: int,
    **settings: Any,  # noqa: ANN401 - the columns that the event is about
) -> None:
    """One more event, in a transaction that holds the lock on the experiment's row since it read this progress."""
    experiment_id, sequence, at = progress.experiment.id, progress.version + 1, max(progress.as_of, now)
    event = Event(sequence, kind, at, details=details)
    await connection.execute(insert(events), traffic_rows.by_column(events, [traffic_rows.event_row(experiment_id, event)]))
    moved = update(experiments).where(experiments.c.id == experiment_id)
    await connection.execute(moved.values(version=sequence, as_of=at, **settings))
