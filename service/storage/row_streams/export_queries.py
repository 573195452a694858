"""What exports read: every draw, observation, event or snapshot of an experiment, in ascending order of its sequence.

Every statement walks an index in its order, so that the first row is there at once and none is sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.storage import settings_rows, traffic_rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from service.domain import ArmRecord, Progress, Snapshot
    from service.storage.row_streams.row_snapshot import Row, RowSnapshot

# So many rows are in memory at once: some hundred bytes each.
_AT_ONCE = 1_000
# Of events fewer: one may hold the values of an arm, as they were and as they are.
_EVENTS_AT_ONCE = 200
_SNAPSHOTS_AT_ONCE = 4

_ASSIGNMENTS = (
    "SELECT sequence, draw, token, arm, unit, reason, status, reward, closed, epoch, created_at, rewarded_at, expires_at, "
    "expiry_reward FROM assignments t WHERE experiment_id = $1 AND draw >= $2 AND draw < $3{arm} ORDER BY draw"
)
_EVENTS = "SELECT * FROM events t WHERE experiment_id = $1 AND sequence >= $2 AND sequence < $3{arm} ORDER BY sequence"
# In the very words of the index over them. What was corrected or voided is so by its id.
_OBSERVATIONS = (
    "SELECT t.sequence, o.id, t.arm, coalesce(o.status, t.status_after) AS status, "
    "CASE WHEN o.status = 'voided' THEN NULL ELSE coalesce(o.reward, t.reward_after) END AS reward, t.epoch, t.at "
    "FROM events t LEFT JOIN observations o ON o.experiment_id = t.experiment_id AND o.sequence = t.sequence "
    "WHERE t.experiment_id = $1 AND kind = 'observation' AND t.sequence >= $2 AND t.sequence < $3{arm} ORDER BY t.sequence"
)
_SNAPSHOTS = "SELECT * FROM snapshots WHERE experiment_id = $1 AND sequence >= $2 AND sequence < $3 ORDER BY sequence"
_DRAW_FROM = "SELECT draw, created_at, sequence FROM assignments WHERE experiment_id = $1 AND draw >= $2 ORDER BY draw LIMIT 1"
_EVENT_FROM = "SELECT sequence, at FROM events WHERE experiment_id = $1 AND sequence >= $2 ORDER BY sequence LIMIT 1"


async def progress_of(rows: RowSnapshot, key: str) -> Progress | None:
    """The experiment with this key, without its arms."""
    found = await rows.fetch("SELECT * FROM experiments WHERE key = $1", key)
    return settings_rows.progress_from(found[0]) if found else None


async def arm_keys(rows: RowSnapshot, experiment_id: int) -> list[str]:
    """The keys of its arms, by position."""
    return [key for (key,) in await rows.fetch("SELECT key FROM arms WHERE experiment_id = $1 ORDER BY position", experiment_id)]


async def arm_records(rows: RowSnapshot, experiment_id: int) -> list[ArmRecord]:
    """Its arms with their statistics, as stored."""
    found = await rows.fetch("SELECT * FROM arms WHERE experiment_id = $1 ORDER BY position", experiment_id)
    return [traffic_rows.arm_from(row) for row in found]


def assignments(rows: RowSnapshot, experiment_id: int, draws: range, arm: int | None) -> AsyncIterator[Sequence[Row]]:
    """These draws, of this arm or of any, as they are now."""
    return rows.stream(*_asked(_ASSIGNMENTS, experiment_id, draws, arm), at_once=_AT_ONCE)


def observations(rows: RowSnapshot, experiment_id: int, sequences: range, arm: int | None) -> AsyncIterator[Sequence[Row]]:
    """The observations that came with these sequence numbers, as they are now."""
    return rows.stream(*_asked(_OBSERVATIONS, experiment_id, sequences, arm), at_once=_AT_ONCE)


def events(rows: RowSnapshot, experiment_id: int, sequences: range, arm: int | None) -> AsyncIterator[Sequence[Row]]:
    """The events of these sequence numbers."""
    return rows.stream(*_asked(_EVENTS, experiment_id, sequences, arm), at_once=_EVENTS_AT_ONCE)


def _asked(statement: str, experiment_id: int, numbers: range, arm: int | None) -> tuple[Any, ...]:
    """The statement and its values; with the arm only where one is wanted, so that an index can carry it."""
    bounds = experiment_id, numbers.start, numbers.stop
    return (statement.format(arm=""), *bounds) if arm is None else (statement.format(arm=" AND t.arm = $4"), *bounds, arm)


async def snapshots(rows: RowSnapshot, experiment_id: int, sequences: range) -> AsyncIterator[Snapshot]:
    """The snapshots of these versions, oldest first."""
    bounds = experiment_id, sequences.start, sequences.stop
    async for few in rows.stream(_SNAPSHOTS, *bounds, at_once=_SNAPSHOTS_AT_ONCE):
        for row in few:
            yield settings_rows.snapshot_from(row)


async def first_draw(rows: RowSnapshot, experiment_id: int, column: str, least: int, draws: int) -> int:
    """The first of so many draws whose sequence number, or time of creation, is at least this; one more if there is none."""
    return await _first(rows, _DRAW_FROM, ("draw", column), (experiment_id, least), draws)


async def first_event(rows: RowSnapshot, experiment_id: int, at: int, version: int) -> int:
    """The first event, up to this version, that happened at this time or later; one more if there is none."""
    return await _first(rows, _EVENT_FROM, ("sequence", "at"), (experiment_id, at), version)


async def _first(rows: RowSnapshot, statement: str, columns: tuple[str, str], sought: tuple[int, int], most: int) -> int:
    """By halving along the primary key, as in service/storage/queries/time_bounds.py; numbers may be missing."""
    (number, value), (experiment_id, least) = columns, sought
    low, high = 1, most + 1
    while low < high:
        middle = (low + high) // 2
        found = await rows.fetch(statement, experiment_id, middle)
        if found and found[0][value] < least:
            low = found[0][number] + 1
        else:
            high = middle
    return low
