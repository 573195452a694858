"""The reading side: single things, pages of things, and streams of the history. Nothing here writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from sqlalchemy import func, select

from service.domain import AUDITED
from service.errors import ExperimentNotFound
from service.storage import records
from service.storage.tables import arms, assignments, batches, events, experiments, observations, snapshots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import ArmRecord, Assignment, Batch, Event, ObservationRecord, Progress, Snapshot

_STREAMED_AT_ONCE = 2_000


async def experiment_id_of(connection: AsyncConnection, key: str) -> int:
    """The internal id behind a key."""
    found = (await connection.execute(select(experiments.c.id).where(experiments.c.key == key))).scalar_one_or_none()
    if found is None:
        raise ExperimentNotFound(key)
    return int(found)


async def experiment_by_key(connection: AsyncConnection, key: str) -> tuple[Progress, list[ArmRecord]]:
    """An experiment with all its arms, all draws counted."""
    row = (await connection.execute(select(experiments).where(experiments.c.key == key))).mappings().first()
    if row is None:
        raise ExperimentNotFound(key)
    members = select(arms).where(arms.c.experiment_id == row["id"]).order_by(arms.c.position)
    return _counted(records.progress_from(row), (await connection.execute(members)).mappings())


async def page_of_experiments(
    connection: AsyncConnection, *, before: int | None, limit: int
) -> list[tuple[Progress, list[ArmRecord]]]:
    """Newest first; `before` is the id to go on below."""
    wanted = select(experiments).order_by(experiments.c.id.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(experiments.c.id < before)
    found = [records.progress_from(row) for row in (await connection.execute(wanted)).mappings()]
    members: dict[int, list[RowMapping]] = {progress.experiment.id: [] for progress in found}
    theirs = select(arms).where(arms.c.experiment_id.in_(members)).order_by(arms.c.experiment_id, arms.c.position)
    for row in (await connection.execute(theirs)).mappings():
        members[row["experiment_id"]].append(row)
    return [_counted(progress, members[progress.experiment.id]) for progress in found]


def _counted(progress: Progress, members: Iterable[RowMapping]) -> tuple[Progress, list[ArmRecord]]:
    return replace(progress, uncounted=()), progress.counted(map(records.arm_from, members))


async def assignment_by_draw(connection: AsyncConnection, experiment_id: int, draw: int) -> Assignment | None:
    """One assignment."""
    wanted = select(assignments).where(assignments.c.experiment_id == experiment_id, assignments.c.draw == draw)
    row = (await connection.execute(wanted)).mappings().first()
    return records.assignment_from(row) if row else None


async def page_of_assignments(
    connection: AsyncConnection,
    experiment_id: int,
    *,
    before: int | None,
    limit: int,
    status: str | None,
    arm: int | None,
    unit: str | None,
) -> list[Assignment]:
    """Newest first; `before` is the draw number to go on below."""
    wanted = select(assignments).where(assignments.c.experiment_id == experiment_id)
    for column, value in (
        (assignments.c.status, status),
        (assignments.c.arm, arm),
        (assignments.c.unit, unit),
    ):
        if value is not None:
            wanted = wanted.where(column == value)
    if before is not None:
        wanted = wanted.where(assignments.c.draw < before)
    wanted = wanted.order_by(assignments.c.draw.desc()).limit(limit)
    return [records.assignment_from(row) for row in (await connection.execute(wanted)).mappings()]


async def page_of_events(connection: AsyncConnection, experiment_id: int, *, before: int | None, limit: int) -> list[Event]:
    """The audit log, newest first; `before` is the sequence number to go on below."""
    traffic = ("draw", "observation", "reward", "expiry", "maturity")
    wanted = select(events).where(events.c.experiment_id == experiment_id, events.c.kind.not_in(traffic))
    if before is not None:
        wanted = wanted.where(events.c.sequence < before)
    wanted = wanted.order_by(events.c.sequence.desc()).limit(limit)
    return [records.event_from(row) for row in (await connection.execute(wanted)).mappings()]


async def arm_changes_after(connection: AsyncConnection, experiment_id: int, arm: int, sequence: int) -> list[Event]:
    """What was changed about an arm after this point, oldest first."""
    wanted = (
        select(events)
        .where(
            events.c.experiment_id == experiment_id,
            events.c.kind.in_(AUDITED),
            events.c.kind == "arm_changed",
            events.c.arm == arm,
            events.c.sequence > sequence,
        )
        .order_by(events.c.sequence)
    )
    return [records.event_from(row) for row in (await connection.execute(wanted)).mappings()]


async def assignments_from(connection: AsyncConnection, experiment_id: int, first: int, count: int) -> list[Assignment]:
    """So many assignments in draw order, beginning with this draw."""
    wanted = (
        select(assignments)
        .where(assignments.c.experiment_id == experiment_id, assignments.c.draw >= first, assignments.c.draw < first + count)
        .order_by(assignments.c.draw)
    )
    return [records.assignment_from(row) for row in (await connection.execute(wanted)).mappings()]


async def experiments_with_due(connection: AsyncConnection, now: int) -> Sequence[str]:
    """Keys of the experiments in which some assignment waits for the sweep; archived ones are frozen."""
    due = select(assignments.c.draw).where(
        assignments.c.experiment_id == experiments.c.id,
        assignments.c.due_at.is_not(None),
        assignments.c.due_at <= now,
    )
    wanted = select(experiments.c.key).where(experiments.c.may_expire, experiments.c.status != "archived", due.exists())
    return (await connection.execute(wanted)).scalars().all()


async def history(connection: AsyncConnection, experiment_id: int, *, by_assignment: bool = False) -> AsyncIterator[Event]:
    """The whole history in sequence order, or (assignment events only) assignment by assignment."""
    wanted = select(events).where(events.c.experiment_id == experiment_id)
    if by_assignment:
        wanted = wanted.where(events.c.draw.is_not(None)).order_by(events.c.draw, events.c.sequence)
    else:
        wanted = wanted.order_by(events.c.sequence)
    async for row in _stream(connection, wanted):
        yield records.event_from(row)


async def all_assignments(connection: AsyncConnection, experiment_id: int) -> AsyncIterator[tuple[Assignment, int | None]]:
    """Every assignment in draw order, each with the time at which the sweep will look at it, as stored."""
    wanted = select(assignments).where(assignments.c.experiment_id == experiment_id).order_by(assignments.c.draw)
    async for row in _stream(connection, wanted):
        yield records.assignment_from(row), row["due_at"]


async def all_batches(connection: AsyncConnection, experiment_id: int) -> AsyncIterator[Batch]:
    """Every planned batch in order."""
    wanted = select(batches).where(batches.c.experiment_id == experiment_id).order_by(batches.c.number)
    async for row in _stream(connection, wanted):
        yield records.batch_from(row)


async def all_observations(connection: AsyncConnection, experiment_id: int) -> AsyncIterator[ObservationRecord]:
    """Every named observation in sequence order."""
    wanted = select(observations).where(observations.c.experiment_id == experiment_id)
    async for row in _stream(connection, wanted.order_by(observations.c.sequence)):
        yield records.observation_from(row)


async def all_snapshots(connection: AsyncConnection, experiment_id: int) -> list[Snapshot]:
    """The course of the experiment, oldest first."""
    wanted = select(snapshots).where(snapshots.c.experiment_id == experiment_id).order_by(snapshots.c.sequence)
    return [records.snapshot_from(row) for row in (await connection.execute(wanted)).mappings()]


async def experiments_to_conclude(connection: AsyncConnection) -> dict[str, int]:
    """Key and version of the experiments that conclude by themselves once they are sure."""
    wanted = select(experiments.c.key, experiments.c.version).where(
        experiments.c.conclude_when.is_not(None), experiments.c.status.in_(("running", "paused"))
    )
    found = await connection.execute(wanted)
    return {row.key: row.version for row in found}


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
