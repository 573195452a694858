"""What exports read: every draw, observation, event or snapshot of an experiment, in ascending order of its sequence.

Every statement walks an index in its order, so that the first row is there at once and none is sorted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from service.storage import settings_rows, traffic_rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from service.domain import ArmRecord, Progress
    from service.storage.row_streams.row_snapshot import Row, RowSnapshot

_SNAPSHOTS_AT_ONCE = 4
_EDITS_AT_ONCE = 2_000
_EVENTS_AT_ONCE = 20_000

_ASSIGNMENTS = (
    "SELECT sequence, draw, token, arm, unit, reason, status, reward, closed, epoch, created_at, rewarded_at, expires_at, "
    "expiry_reward FROM assignments t WHERE experiment_id = $1 AND draw >= $2 AND draw < $3{arm} ORDER BY draw LIMIT $4"
)
_EVENTS = "SELECT * FROM events t WHERE experiment_id = $1 AND sequence >= $2 AND sequence < $3{arm} ORDER BY sequence LIMIT $4"
# In the very words of the index over them. What was corrected or voided is so by its id.
_OBSERVATIONS = (
    "SELECT t.sequence, o.id, t.arm, coalesce(o.status, t.status_after) AS status, "
    "CASE WHEN o.status = 'voided' THEN NULL ELSE coalesce(o.reward, t.reward_after) END AS reward, t.epoch, t.at, o.changed "
    "FROM events t LEFT JOIN observations o ON o.experiment_id = t.experiment_id AND o.sequence = t.sequence "
    "WHERE t.experiment_id = $1 AND kind = 'observation' AND t.sequence >= $2 AND t.sequence < $3{arm} "
    "ORDER BY t.sequence LIMIT $4"
)
_SNAPSHOTS = "SELECT * FROM snapshots WHERE experiment_id = $1 AND sequence >= $2 AND sequence < $3 ORDER BY sequence LIMIT $4"
_DRAW_FROM = "SELECT draw, created_at, sequence FROM assignments WHERE experiment_id = $1 AND draw >= $2 ORDER BY draw LIMIT 1"
_EVENT_FROM = "SELECT sequence, at FROM events WHERE experiment_id = $1 AND sequence >= $2 ORDER BY sequence LIMIT 1"
_PRESENT = "SELECT key, version, pruned_at FROM experiments WHERE id = $1"
_STEPS = (
    "SELECT sequence, draw, kind, status_before, reward_before, closed_before FROM events "
    "WHERE experiment_id = $1 AND sequence >= $2 AND sequence < $3 AND draw >= $4 AND draw < $5 AND status_before IS NOT NULL "
    "ORDER BY sequence"
)
# In the very words of the index of audited events, as are corrections below.
_OBSERVATIONS_BEFORE = (
    "SELECT sequence, details, status_before, reward_before FROM events "
    "WHERE experiment_id = $1 AND kind NOT IN ('draw', 'observation', 'reward', 'expiry', 'maturity') "
    "AND kind IN ('observation_edit', 'observation_void') AND sequence >= $2 ORDER BY sequence LIMIT $3"
)
# Steps that date a reward: the first one, of which an assignment has one at most, and corrections.
_FIRST_REWARDS = (
    "SELECT draw, at FROM events WHERE experiment_id = $1 AND sequence >= $2 AND sequence < $3 AND draw >= $4 AND draw < $5 "
    "AND kind = 'reward' ORDER BY sequence"
)
_CORRECTIONS = (
    "SELECT draw, at FROM events WHERE experiment_id = $1 "
    "AND kind NOT IN ('draw', 'observation', 'reward', 'expiry', 'maturity') AND kind = 'correction' "
    "AND sequence >= $2 AND sequence < $3 AND draw >= $4 AND draw < $5 ORDER BY sequence"
)


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


async def present_of(rows: RowSnapshot, experiment_id: int) -> Row | None:
    """The key, the version and the time of pruning that an experiment has now; None if it is gone."""
    found = await rows.fetch(_PRESENT, experiment_id)
    return found[0] if found else None


async def assignments(rows: RowSnapshot, experiment_id: int, draws: range, arm: int | None, most: int) -> Sequence[Row]:
    """The first of these draws, of this arm or of any, as they are now."""
    return await rows.fetch(*_asked(_ASSIGNMENTS, experiment_id, draws, arm, most))


async def observations(rows: RowSnapshot, experiment_id: int, sequences: range, arm: int | None, most: int) -> Sequence[Row]:
    """The first observations that came with these sequence numbers, as they are now."""
    return await rows.fetch(*_asked(_OBSERVATIONS, experiment_id, sequences, arm, most))


async def events(rows: RowSnapshot, experiment_id: int, sequences: range, arm: int | None, most: int) -> Sequence[Row]:
    """The first events of these sequence numbers."""
    return await rows.fetch(*_asked(_EVENTS, experiment_id, sequences, arm, most))


def _asked(statement: str, experiment_id: int, numbers: range, arm: int | None, most: int) -> tuple[Any, ...]:
    """The statement and its values; with the arm only where one is wanted, so that an index can carry it."""
    bounds = experiment_id, numbers.start, numbers.stop, most
    return (statement.format(arm=""), *bounds) if arm is None else (statement.format(arm=" AND t.arm = $5"), *bounds, arm)


async def steps(rows: RowSnapshot, experiment_id: int, sequences: range, draws: range) -> Sequence[Row]:
    """The steps with these sequence numbers that changed one of these draws, each with what it was before."""
    return await rows.fetch(_STEPS, experiment_id, sequences.start, sequences.stop, draws.start, draws.stop)


async def reward_dates(rows: RowSnapshot, experiment_id: int, draws: Collection[int], sequences: range) -> dict[int, int]:
    """When the rewards of these draws came that they had behind these sequence numbers, the first of which is of their own.

    No index leads to rewards. Most come soon after their draws: the events from the first draw on are passed until all are found.
    """
    bounds = min(draws), max(draws) + 1
    corrections = await rows.fetch(_CORRECTIONS, experiment_id, sequences.start, sequences.stop, *bounds)
    dates: dict[int, int] = {draw: at for draw, at in corrections if draw in draws}
    for start in range(sequences.start, sequences.stop, _EVENTS_AT_ONCE):
        if len(dates) == len(draws):
            break
        end = min(start + _EVENTS_AT_ONCE, sequences.stop)
        for draw, at in await rows.fetch(_FIRST_REWARDS, experiment_id, start, end, *bounds):
            if draw in draws:
                dates.setdefault(draw, at)
    return dates


async def observations_before(
    rows: RowSnapshot, experiment_id: int, version: int, names: Collection[str]
) -> dict[str, tuple[str, float | None]]:
    """What these observations were at this version, by id, as far as they were changed since."""
    before: dict[str, tuple[str, float | None]] = {}
    start = version + 1
    while len(before) < len(names) and (found := await rows.fetch(_OBSERVATIONS_BEFORE, experiment_id, start, _EDITS_AT_ONCE)):
        for row in found:
            if (name := json.loads(row["details"])["observation"]) in names:
                before.setdefault(name, (row["status_before"], row["reward_before"]))
        start = found[-1]["sequence"] + 1
    return before


async def is_being_pruned(rows: RowSnapshot, experiment_id: int) -> bool:
    """Are its rows on their way out, or were they when a pruning was interrupted?"""
    return bool(await rows.fetch("SELECT 1 FROM prunings WHERE experiment_id = $1", experiment_id))


async def snapshots(rows: RowSnapshot, experiment_id: int, sequences: range) -> AsyncIterator[Sequence[Row]]:
    """The snapshots of these versions, oldest first, few at once."""
    start = sequences.start
    while found := await rows.fetch(_SNAPSHOTS, experiment_id, start, sequences.stop, _SNAPSHOTS_AT_ONCE):
        yield found
        start = found[-1]["sequence"] + 1


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
