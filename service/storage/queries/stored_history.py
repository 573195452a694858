"""The history: the audit log by pages, and every event, batch, observation and snapshot as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, func, select, text

from service.domain.limits import MOST_VISITED_EVENTS
from service.storage import settings_rows, traffic_rows
from service.storage.tables import AUDITED_ONLY, assignments, batches, events, observations, snapshots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import Assignment, Batch, Event, ObservationRecord, Snapshot


_STREAMED_AT_ONCE = 2_000


async def page_of_events(
    connection: AsyncConnection, experiment_id: int, sequences: range, limit: int, kinds: Collection[str] = ()
) -> list[Event]:
    """The audit log, newest first, of these sequence numbers; of these kinds, or of all."""
    wanted = _audited(select(events), experiment_id, sequences, limit, kinds)
    return [traffic_rows.event_from(row) for row in (await connection.execute(wanted)).mappings()]


async def length_of_details(
    connection: AsyncConnection, experiment_id: int, sequences: range, limit: int, kinds: Collection[str] = ()
) -> int:
    """How long the details of this page of the audit log are, together."""
    details = _audited(select(events.c.details), experiment_id, sequences, limit, kinds).subquery()
    found = await connection.execute(select(func.coalesce(func.sum(func.length(details.c.details)), 0)))
    return int(found.scalar_one())


async def visited_events(connection: AsyncConnection, experiment_id: int, sequences: range) -> range:
    """As many of these sequence numbers, from the newest on, as one page of the audit log looks through for some kinds."""
    newest = _audited(select(events.c.sequence), experiment_id, sequences, 1, ()).offset(MOST_VISITED_EVENTS - 1)
    last = (await connection.execute(newest)).scalar_one_or_none()
    return sequences if last is None else range(last, sequences.stop)


def _audited(found: Select[Any], experiment_id: int, sequences: range, limit: int, kinds: Collection[str]) -> Select[Any]:
    within = events.c.sequence >= sequences.start, events.c.sequence < sequences.stop
    found = found.where(events.c.experiment_id == experiment_id, text(AUDITED_ONLY), *within)
    if kinds:
        found = found.where(events.c.kind.in_(kinds))
    return found.order_by(events.c.sequence.desc()).limit(limit)


async def arm_changes_after(connection: AsyncConnection, experiment_id: int, arm: int, sequence: int) -> list[Event]:
    """What was changed about an arm after this point, oldest first."""
    wanted = (
        select(events)
        .where(
            events.c.experiment_id == experiment_id,
            text(AUDITED_ONLY),
            events.c.kind == "arm_changed",
            events.c.arm == arm,
            events.c.sequence > sequence,
        )
        .order_by(events.c.sequence)
    )
    return [traffic_rows.event_from(row) for row in (await connection.execute(wanted)).mappings()]


async def history(connection: AsyncConnection, experiment_id: int, *, by_assignment: bool = False) -> AsyncIterator[Event]:
    """The whole history in sequence order, or (assignment events only) assignment by assignment."""
    wanted = select(events).where(events.c.experiment_id == experiment_id)
    if by_assignment:
        wanted = wanted.where(events.c.draw.is_not(None)).order_by(events.c.draw, events.c.sequence)
    else:
        wanted = wanted.order_by(events.c.sequence)
    async for row in _stream(connection, wanted):
        yield traffic_rows.event_from(row)


async def all_assignments(connection: AsyncConnection, experiment_id: int) -> AsyncIterator[tuple[Assignment, int | None]]:
    """Every assignment in draw order, each with the time at which the sweep will look at it, as stored."""
    wanted = select(assignments).where(assignments.c.experiment_id == experiment_id).order_by(assignments.c.draw)
    async for row in _stream(connection, wanted):
        yield traffic_rows.assignment_from(row), row["due_at"]


async def all_batches(connection: AsyncConnection, experiment_id: int) -> AsyncIterator[Batch]:
    """Every planned batch in order."""
    wanted = select(batches).where(batches.c.experiment_id == experiment_id).order_by(batches.c.number)
    async for row in _stream(connection, wanted):
        yield settings_rows.batch_from(row)


async def all_observations(connection: AsyncConnection, experiment_id: int) -> AsyncIterator[ObservationRecord]:
    """Every named observation in sequence order."""
    wanted = select(observations).where(observations.c.experiment_id == experiment_id)
    async for row in _stream(connection, wanted.order_by(observations.c.sequence)):
        yield settings_rows.observation_from(row)


async def snapshot_sequences(connection: AsyncConnection, experiment_id: int) -> Sequence[int]:
    """The versions at which there are snapshots, oldest first."""
    wanted = select(snapshots.c.sequence).where(snapshots.c.experiment_id == experiment_id).order_by(snapshots.c.sequence)
    return (await connection.execute(wanted)).scalars().all()


async def snapshots_at(connection: AsyncConnection, experiment_id: int, sequences: Sequence[int]) -> list[Snapshot]:
    """The snapshots of these versions, oldest first."""
    these = snapshots.c.experiment_id == experiment_id, snapshots.c.sequence.in_(sequences)
    wanted = select(snapshots).where(*these).order_by(snapshots.c.sequence)
    return [settings_rows.snapshot_from(row) for row in (await connection.execute(wanted)).mappings()]


async def count_events(connection: AsyncConnection, experiment_id: int) -> int:
    """How long the history is."""
    counted = select(func.count()).select_from(events).where(events.c.experiment_id == experiment_id)
    return (await connection.execute(counted)).scalar_one()


async def _stream(connection: AsyncConnection, statement: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - any select
    """Rows as they come, a bounded number in memory."""
    options = {"yield_per": _STREAMED_AT_ONCE}
    result = await connection.stream(statement, execution_options=options)
    async for rows in result.mappings().partitions(_STREAMED_AT_ONCE):
        for row in rows:
            yield row
