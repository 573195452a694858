"""What traffic moves, as rows and back: progress, counts of arms, assignments and events.

Rows are tuples in the order of the table's columns; for an update, with None where it changes nothing.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from service.domain import Arm, ArmRecord, ArmStatistics, Assignment, AssignmentState, Event, TakenStep
from service.exact import ExactSum, Moments
from service.storage.row_shapes import ArmShape
from service.storage.updated_columns import ARM_COUNTS, LATER_SETTINGS, PROGRESS, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import RowMapping, Table

    from service.domain import Progress

    Row = tuple[Any, ...]

_NO_SETTINGS = (None,) * len(SETTINGS)
_NO_LATER_SETTINGS = (None,) * len(LATER_SETTINGS)
NO_PROGRESS = (None,) * len(PROGRESS)
NO_COUNTS = (None,) * len(ARM_COUNTS)
_NO_DEFINITION = (None,) * 6
# Not of the tables themselves: an export's process reads rows, too, and SQLAlchemy would be half of its memory.
_ARM_COLUMNS = ArmShape.__struct_fields__
# Of most arms of large experiments: not worth a parser.
_NO_VALUE = "null"


def to_json(value: object) -> str:
    """Compact JSON text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def by_column(table: Table, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Whole rows as statements outside the engine take them."""
    names = table.columns.keys()
    return [dict(zip(names, row, strict=True)) for row in rows]


def progress_values(progress: Progress) -> Row:
    """The counters, in the order of PROGRESS."""
    return (
        progress.version,
        progress.as_of,
        progress.draws,
        progress.epoch,
        progress.batch,
        progress.plan_cursor,
        progress.plan_averaged,
        progress.may_expire,
        progress.observed,
        progress.snapshot_at,
        progress.snapshot_stride,
        ",".join(map(str, progress.uncounted)),
    )


def progress_row(progress: Progress) -> Row:
    """What every change moves."""
    later = (*_NO_LATER_SETTINGS, progress.imported)
    return (progress.experiment.id, None, *_NO_SETTINGS, None, *progress_values(progress), *later)


def arm_count_row(experiment_id: int, record: ArmRecord, changed: int) -> Row:
    """What traffic changes about an arm."""
    return (experiment_id, record.arm.position, *_NO_DEFINITION, *count_values(record.statistics, changed))


def arm_draws_row(experiment_id: int, record: ArmRecord, changed: int) -> Row:
    """What a plain draw changes about an arm."""
    counted = record.statistics
    counts = (changed, counted.pending, None, counted.epoch_draws)
    return (experiment_id, record.arm.position, *_NO_DEFINITION, *counts, *NO_COUNTS[4:])


def arm_imputed_row(experiment_id: int, record: ArmRecord, changed: int) -> Row:
    """What a draw changes about an arm under a numeric expiry."""
    counted, imputed = record.statistics, record.statistics.imputed
    counts = (changed, counted.pending, None, counted.epoch_draws, None, None, None)
    moments = (imputed.count, str(imputed.total), str(imputed.squares))
    return (experiment_id, record.arm.position, *_NO_DEFINITION, *counts, *moments, *NO_COUNTS[10:])


def count_values(counted: ArmStatistics, changed: int) -> Row:
    """The counts of an arm, in the order of ARM_COUNTS."""
    return (
        changed,
        counted.pending,
        counted.expired,
        counted.epoch_draws,
        counted.observed.count,
        str(counted.observed.total),
        str(counted.observed.squares),
        counted.imputed.count,
        str(counted.imputed.total),
        str(counted.imputed.squares),
        counted.matured.count,
        str(counted.matured.total),
        str(counted.matured.squares),
        counted.earlier.count,
        str(counted.earlier.total),
        str(counted.earlier.squares),
        counted.planned,
        counted.plan_left,
        counted.plan_weight_sum,
    )


def arm_from(row: RowMapping) -> ArmRecord:
    """An arms row."""
    return arm_of([None, *(row[name] for name in _ARM_COLUMNS)])


def arm_of(row: Iterable[Any]) -> ArmRecord:
    """An arms row, as its values in order, the experiment first: of many rows that is read in half the time."""
    (
        _, position, key, name, value, min_share, status, added, _, pending, expired, epoch_draws, *sums,
        planned, plan_left, plan_weight_sum,
    ) = row  # fmt: skip
    observed, matured = _moments(*sums[0:3]), _moments(*sums[6:9])
    return ArmRecord(
        arm=Arm(position, key, name, None if value == _NO_VALUE else json.loads(value), min_share, status, added),
        statistics=ArmStatistics(
            pending=pending,
            expired=expired,
            epoch_draws=epoch_draws,
            observed=observed,
            imputed=_moments(*sums[3:6]),
            matured=observed if matured == observed else matured,  # one object, so that they are counted on together
            earlier=_moments(*sums[9:12]),
            planned=planned,
            plan_left=plan_left,
            plan_weight_sum=plan_weight_sum,
        ),
    )


@lru_cache(maxsize=4096)  # a worker reads the same sums again and again while another one draws
def _moments(count: int, total: str, squares: str) -> Moments:
    return Moments(count, ExactSum.parse(total), ExactSum.parse(squares))


def drawn_row(experiment_id: int, assignment: Assignment) -> Row:
    """A new draw: a whole assignments row, from which its event is made, too.

    Its state and due time are written as they always are then (tests/storage/test_traffic_rows.py holds them against the state
    machine): to read them would take half as long again, on every ask.
    """
    return (
        experiment_id,
        assignment.draw,
        assignment.token,
        assignment.sequence,
        assignment.arm,
        assignment.unit,
        assignment.reason,
        assignment.epoch,
        assignment.created_at,
        assignment.expires_at,
        assignment.expiry_reward,
        "pending",
        None,
        assignment.state.closed,
        None,
        assignment.expires_at,
        assignment.idempotency_key,
    )


def restated_row(experiment_id: int, assignment: Assignment) -> Row:
    """What a change of state changes."""
    state, nothing = assignment.state, None
    return (
        experiment_id, assignment.draw, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing,
        state.status, state.reward, state.closed, assignment.rewarded_at, assignment.due_at, nothing,
    )  # fmt: skip


def assignment_from(row: RowMapping) -> Assignment:
    """An assignments row."""
    return assignment_of(row.values())


def assignment_of(row: Iterable[Any]) -> Assignment:
    """An assignments row, as its values in order."""
    (
        _, draw, token, sequence, arm, unit, reason, epoch, created_at, expires_at, expiry_reward,
        status, reward, closed, rewarded_at, _, key,
    ) = row  # fmt: skip
    return Assignment(
        draw,
        token,
        sequence,
        arm,
        unit,
        reason,
        epoch,
        created_at,
        expires_at,
        expiry_reward,
        AssignmentState(status, reward, bool(closed)),
        rewarded_at,
        key,
    )


def event_row(experiment_id: int, event: Event) -> Row:
    """A whole events row."""
    before, after = event.before, event.after
    return (
        experiment_id,
        event.sequence,
        event.kind,
        event.at,
        event.arm,
        event.draw,
        event.epoch,
        event.reason,
        event.expires_at,
        event.expiry_reward,
        *((None, None, None) if before is None else (before.status, before.reward, before.closed)),
        *((None, None, None) if after is None else (after.status, after.reward, after.closed)),
        None if event.details is None else to_json(event.details),
    )


def step_row(experiment_id: int, step: TakenStep) -> Row:
    """A whole events row, and what its step did to the assignment's times. It is `step.event`, column by column."""
    moved, before, after = step.assignment, step.before, step.assignment.state
    return (
        experiment_id, step.sequence, step.kind, step.at, moved.arm, moved.draw, moved.epoch, None, None, moved.expiry_reward,
        before.status, before.reward, before.closed, after.status, after.reward, after.closed,
        None if step.details is None else to_json(step.details),
        moved.rewarded_at, moved.due_at,
    )  # fmt: skip


def event_from(row: RowMapping) -> Event:
    """An events row."""
    return Event(
        sequence=row["sequence"],
        kind=row["kind"],
        at=row["at"],
        arm=row["arm"],
        draw=row["draw"],
        epoch=row["epoch"],
        reason=row["reason"],
        expires_at=row["expires_at"],
        expiry_reward=row["expiry_reward"],
        before=_state(row["status_before"], row["reward_before"], row["closed_before"]),
        after=_state(row["status_after"], row["reward_after"], row["closed_after"]),
        details=json.loads(row["details"]) if row["details"] is not None else None,
    )


def _state(status: str | None, reward: float | None, closed: object) -> AssignmentState | None:
    return None if status is None else AssignmentState(cast("Any", status), reward, bool(closed))
