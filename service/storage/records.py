"""Rows to domain objects and back: the one place that knows which column holds what.

Rows are tuples in the order of the table's columns; for an update, with None where it changes nothing.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from service.domain import (
    Arm,
    ArmRecord,
    ArmStatistics,
    Assignment,
    AssignmentState,
    Batch,
    ConcludeWhen,
    Event,
    Experiment,
    Expiry,
    ObservationRecord,
    PolicySpec,
    Progress,
    RewardSpec,
    Snapshot,
    StoredReply,
)
from service.exact import ExactSum, Moments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import RowMapping

    Row = tuple[Any, ...]


def to_json(value: object) -> str:
    """Compact JSON text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# Columns that are updated together.
SETTINGS = (
    "name",
    "description",
    "policy",
    "reward",
    "expiry",
    "sticky",
    "confidence",
    "conclude_when",
    "status",
    "concluded_arm",
)
PROGRESS = (
    "version",
    "as_of",
    "draws",
    "epoch",
    "batch",
    "plan_cursor",
    "plan_averaged",
    "may_expire",
    "observed",
    "snapshot_at",
    "snapshot_stride",
    "uncounted",
)
# Those of them that plain draws change.
DRAWING = ("version", "as_of", "draws", "may_expire", "uncounted")
ARM_DEFINITION = ("name", "value", "min_share", "status")
ARM_COUNTS = (
    "changed",
    "pending",
    "expired",
    "epoch_draws",
    "observations",
    "reward_sum",
    "reward_squares",
    "imputed",
    "imputed_sum",
    "imputed_squares",
    "matured",
    "matured_sum",
    "matured_squares",
    "earlier",
    "earlier_sum",
    "earlier_squares",
    "planned",
    "plan_left",
    "plan_weight_sum",
)
# Those of them that a plain draw changes.
ARM_DRAWS = ("changed", "pending", "epoch_draws")
# What a snapshot tells of the arms; the rest of it are columns.
_COURSE = [one.name for one in fields(Snapshot) if one.name not in ("sequence", "at")]
_NO_SETTINGS = (None,) * len(SETTINGS)
_NO_PROGRESS = (None,) * len(PROGRESS)
_NO_COUNTS = (None,) * len(ARM_COUNTS)
ASSIGNMENT_STATE = ("status", "reward", "closed", "rewarded_at", "due_at")


def _settings(experiment: Experiment) -> Row:
    return (
        experiment.name,
        experiment.description,
        to_json(asdict(experiment.policy)),
        to_json(asdict(experiment.reward)),
        to_json(asdict(experiment.expiry)) if experiment.expiry else None,
        experiment.sticky,
        experiment.confidence,
        to_json(asdict(experiment.conclude_when)) if experiment.conclude_when else None,
        experiment.status,
        experiment.concluded_arm,
    )


def _progress(progress: Progress) -> Row:
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


def settings_row(experiment: Experiment) -> Row:
    """What a patch or a lifecycle step may change."""
    return (experiment.id, None, *_settings(experiment), None, *_NO_PROGRESS)


def progress_row(progress: Progress) -> Row:
    """What every change moves."""
    return (progress.experiment.id, None, *_NO_SETTINGS, None, *_progress(progress))


def new_experiment_values(progress: Progress) -> dict[str, Any]:
    """A new experiment, by column; the database gives the id."""
    experiment = progress.experiment
    fixed = {"key": experiment.key, "created_at": experiment.created_at}
    settings = dict(zip(SETTINGS, _settings(experiment), strict=True))
    return fixed | settings | dict(zip(PROGRESS, _progress(progress), strict=True))


def progress_from(row: RowMapping) -> Progress:
    """An experiments row."""
    expiry = json.loads(row["expiry"]) if row["expiry"] else None
    conclude_when = json.loads(row["conclude_when"]) if row["conclude_when"] else None
    return Progress(
        experiment=Experiment(
            id=row["id"],
            key=row["key"],
            name=row["name"],
            description=row["description"],
            policy=_policy(row["policy"]),
            reward=_reward(row["reward"]),
            expiry=Expiry(**expiry) if expiry else None,
            sticky=bool(row["sticky"]),
            confidence=row["confidence"],
            conclude_when=ConcludeWhen(**conclude_when) if conclude_when else None,
            status=row["status"],
            concluded_arm=row["concluded_arm"],
            created_at=row["created_at"],
        ),
        version=row["version"],
        as_of=row["as_of"],
        draws=row["draws"],
        epoch=row["epoch"],
        batch=row["batch"],
        plan_cursor=row["plan_cursor"],
        plan_averaged=row["plan_averaged"],
        may_expire=bool(row["may_expire"]),
        observed=bool(row["observed"]),
        snapshot_at=row["snapshot_at"],
        snapshot_stride=row["snapshot_stride"],
        uncounted=tuple(map(int, row["uncounted"].split(","))) if row["uncounted"] else (),
    )


@lru_cache(maxsize=256)
def _policy(text: str) -> PolicySpec:
    return PolicySpec(**json.loads(text))


@lru_cache(maxsize=256)
def _reward(text: str) -> RewardSpec:
    return RewardSpec(**json.loads(text))


def arm_row(experiment_id: int, record: ArmRecord, changed: int) -> Row:
    """A whole arms row."""
    arm = record.arm
    definition = (arm.name, to_json(arm.value), arm.min_share, arm.status)
    return (experiment_id, arm.position, arm.key, *definition, arm.added, *_counts(record.statistics, changed))


def arm_count_row(experiment_id: int, record: ArmRecord, changed: int) -> Row:
    """What traffic changes about an arm."""
    return (experiment_id, record.arm.position, None, None, None, None, None, None, *_counts(record.statistics, changed))


def arm_draws_row(experiment_id: int, record: ArmRecord, changed: int) -> Row:
    """What a plain draw changes about an arm."""
    counted = record.statistics
    nothing = (None, None, None, None, None, None)
    return (
        experiment_id, record.arm.position, *nothing, changed, counted.pending, None, counted.epoch_draws, *_NO_COUNTS[4:],
    )  # fmt: skip


def arm_definition_row(experiment_id: int, arm: Arm) -> Row:
    """What people change about an arm."""
    definition = (arm.name, to_json(arm.value), arm.min_share, arm.status)
    return (experiment_id, arm.position, None, *definition, None, *_NO_COUNTS)


def _counts(counted: ArmStatistics, changed: int) -> Row:
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
    observed = _moments(row["observations"], row["reward_sum"], row["reward_squares"])
    matured = _moments(row["matured"], row["matured_sum"], row["matured_squares"])
    return ArmRecord(
        arm=Arm(
            position=row["position"],
            key=row["key"],
            name=row["name"],
            value=json.loads(row["value"]),
            min_share=row["min_share"],
            status=row["status"],
            added=row["added"],
        ),
        statistics=ArmStatistics(
            pending=row["pending"],
            expired=row["expired"],
            epoch_draws=row["epoch_draws"],
            observed=observed,
            imputed=_moments(row["imputed"], row["imputed_sum"], row["imputed_squares"]),
            matured=observed if matured == observed else matured,  # one object, so that they are counted on together
            earlier=_moments(row["earlier"], row["earlier_sum"], row["earlier_squares"]),
            planned=row["planned"],
            plan_left=row["plan_left"],
            plan_weight_sum=row["plan_weight_sum"],
        ),
    )


@lru_cache(maxsize=4096)  # a worker reads the same sums again and again while another one draws
def _moments(count: int, total: str, squares: str) -> Moments:
    return Moments(count, ExactSum.parse(total), ExactSum.parse(squares))


def drawn_row(experiment_id: int, assignment: Assignment) -> Row:
    """A new draw: a whole assignments row, from which its event is made, too."""
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


def assignment_move_row(experiment_id: int, assignment: Assignment) -> Row:
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


def batch_row(experiment_id: int, batch: Batch) -> Row:
    """A whole batches row."""
    return (experiment_id, batch.number, batch.sequence, to_json(batch.positions), to_json(batch.counts))


def batch_from(row: RowMapping) -> Batch:
    """A batches row."""
    return Batch(
        number=row["number"],
        sequence=row["sequence"],
        positions=tuple(json.loads(row["positions"])),
        counts=tuple(json.loads(row["counts"])),
    )


def snapshot_row(experiment_id: int, snapshot: Snapshot) -> Row:
    """A whole snapshots row."""
    body = {name: getattr(snapshot, name) for name in _COURSE}
    return (experiment_id, snapshot.sequence, snapshot.at, zlib.compress(to_json(body).encode(), level=1))


def snapshot_from(row: RowMapping) -> Snapshot:
    """A snapshots row."""
    return Snapshot(sequence=row["sequence"], at=row["at"], **json.loads(zlib.decompress(row["body"])))


def observation_row(experiment_id: int, named: ObservationRecord) -> Row:
    """A whole observations row."""
    return (experiment_id, named.id, named.arm, named.reward, named.sequence)


def observation_from(row: RowMapping) -> ObservationRecord:
    """An observations row."""
    return ObservationRecord(id=row["id"], arm=row["arm"], reward=row["reward"], sequence=row["sequence"])


def reply_row(experiment_id: int, reply: StoredReply) -> Row:
    """A whole replies row."""
    return (experiment_id, reply.route, reply.key, reply.body_hash, reply.status, reply.body, reply.created_at)


def reply_from(row: RowMapping) -> StoredReply:
    """A replies row."""
    return StoredReply(
        route=row["route"],
        key=row["key"],
        body_hash=row["body_hash"],
        status=row["status"],
        body=bytes(row["body"]),
        created_at=row["created_at"],
    )
