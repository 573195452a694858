"""Rows to domain objects and back: the one place that knows which column holds what."""

from __future__ import annotations

import json
from dataclasses import asdict
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
    StoredReply,
)
from service.exact import ExactSum, Moments

if TYPE_CHECKING:
    from sqlalchemy import RowMapping as Row

    Values = dict[str, Any]


def to_json(value: object) -> str:
    """Compact JSON text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def settings_values(experiment: Experiment) -> Values:
    """The columns that a patch or a lifecycle step may change."""
    return {
        "name": experiment.name,
        "description": experiment.description,
        "policy": to_json(asdict(experiment.policy)),
        "reward": to_json(asdict(experiment.reward)),
        "expiry": to_json(asdict(experiment.expiry)) if experiment.expiry else None,
        "sticky": experiment.sticky,
        "confidence": experiment.confidence,
        "conclude_when": to_json(asdict(experiment.conclude_when)) if experiment.conclude_when else None,
        "status": experiment.status,
        "concluded_arm": experiment.concluded_arm,
    }


def progress_values(progress: Progress) -> Values:
    """The columns that every change moves."""
    return {
        "version": progress.version,
        "as_of": progress.as_of,
        "draws": progress.draws,
        "epoch": progress.epoch,
        "batch": progress.batch,
        "plan_cursor": progress.plan_cursor,
        "plan_averaged": progress.plan_averaged,
        "may_expire": progress.may_expire,
    }


def new_experiment_values(progress: Progress) -> Values:
    """A whole row for a new experiment; the database gives the id."""
    experiment = progress.experiment
    fixed = {"key": experiment.key, "created_at": experiment.created_at}
    return fixed | settings_values(experiment) | progress_values(progress)


def progress_from(row: Row) -> Progress:
    """An experiments row."""
    expiry = json.loads(row["expiry"]) if row["expiry"] else None
    conclude_when = json.loads(row["conclude_when"]) if row["conclude_when"] else None
    return Progress(
        experiment=Experiment(
            id=row["id"],
            key=row["key"],
            name=row["name"],
            description=row["description"],
            policy=PolicySpec(**json.loads(row["policy"])),
            reward=RewardSpec(**json.loads(row["reward"])),
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
    )


def arm_values(experiment_id: int, record: ArmRecord, changed: int) -> Values:
    """A whole arms row."""
    arm, counted = record.arm, record.statistics
    return {
        "experiment_id": experiment_id,
        "position": arm.position,
        "key": arm.key,
        "name": arm.name,
        "value": to_json(arm.value),
        "min_share": arm.min_share,
        "status": arm.status,
        "added": arm.added,
        "changed": changed,
        "pending": counted.pending,
        "expired": counted.expired,
        "epoch_draws": counted.epoch_draws,
        "observations": counted.observed.count,
        "reward_sum": str(counted.observed.total),
        "reward_squares": str(counted.observed.squares),
        "imputed": counted.imputed.count,
        "imputed_sum": str(counted.imputed.total),
        "imputed_squares": str(counted.imputed.squares),
        "matured": counted.matured.count,
        "matured_sum": str(counted.matured.total),
        "matured_squares": str(counted.matured.squares),
        "planned": counted.planned,
        "plan_left": counted.plan_left,
        "plan_weight_sum": counted.plan_weight_sum,
    }


def arm_from(row: Row) -> ArmRecord:
    """An arms row."""
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
            observed=_moments(row["observations"], row["reward_sum"], row["reward_squares"]),
            imputed=_moments(row["imputed"], row["imputed_sum"], row["imputed_squares"]),
            matured=_moments(row["matured"], row["matured_sum"], row["matured_squares"]),
            planned=row["planned"],
            plan_left=row["plan_left"],
            plan_weight_sum=row["plan_weight_sum"],
        ),
    )


def _moments(count: int, total: str, squares: str) -> Moments:
    return Moments(count, ExactSum.parse(total), ExactSum.parse(squares))


def assignment_state_values(assignment: Assignment) -> Values:
    """The columns of an assignment that change."""
    return {
        "status": assignment.state.status,
        "reward": assignment.state.reward,
        "closed": assignment.state.closed,
        "rewarded_at": assignment.rewarded_at,
        "due_at": assignment.due_at,
    }


def assignment_values(experiment_id: int, assignment: Assignment) -> Values:
    """A whole assignments row."""
    fixed = {
        "experiment_id": experiment_id,
        "draw": assignment.draw,
        "token": assignment.token,
        "sequence": assignment.sequence,
        "arm": assignment.arm,
        "unit": assignment.unit,
        "reason": assignment.reason,
        "epoch": assignment.epoch,
        "created_at": assignment.created_at,
        "expires_at": assignment.expires_at,
        "expiry_reward": assignment.expiry_reward,
        "idempotency_key": assignment.idempotency_key,
    }
    return fixed | assignment_state_values(assignment)


def assignment_from(row: Row) -> Assignment:
    """An assignments row."""
    return Assignment(
        draw=row["draw"],
        token=row["token"],
        sequence=row["sequence"],
        arm=row["arm"],
        unit=row["unit"],
        reason=row["reason"],
        epoch=row["epoch"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        expiry_reward=row["expiry_reward"],
        state=AssignmentState(row["status"], row["reward"], bool(row["closed"])),
        rewarded_at=row["rewarded_at"],
        idempotency_key=row["idempotency_key"],
    )


def event_values(experiment_id: int, event: Event) -> Values:
    """A whole events row."""
    before, after = event.before, event.after
    return {
        "experiment_id": experiment_id,
        "sequence": event.sequence,
        "kind": event.kind,
        "at": event.at,
        "arm": event.arm,
        "draw": event.draw,
        "epoch": event.epoch,
        "reason": event.reason,
        "expires_at": event.expires_at,
        "expiry_reward": event.expiry_reward,
        "status_before": before.status if before else None,
        "reward_before": before.reward if before else None,
        "closed_before": before.closed if before else None,
        "status_after": after.status if after else None,
        "reward_after": after.reward if after else None,
        "closed_after": after.closed if after else None,
        "details": to_json(event.details) if event.details is not None else None,
    }


def event_from(row: Row) -> Event:
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


def batch_values(experiment_id: int, batch: Batch) -> Values:
    """A whole batches row."""
    return {
        "experiment_id": experiment_id,
        "number": batch.number,
        "sequence": batch.sequence,
        "positions": to_json(batch.positions),
        "counts": to_json(batch.counts),
    }


def batch_from(row: Row) -> Batch:
    """A batches row."""
    return Batch(
        number=row["number"],
        sequence=row["sequence"],
        positions=tuple(json.loads(row["positions"])),
        counts=tuple(json.loads(row["counts"])),
    )


def observation_values(experiment_id: int, record: ObservationRecord) -> Values:
    """A whole observations row."""
    return {"experiment_id": experiment_id} | asdict(record)


def observation_from(row: Row) -> ObservationRecord:
    """An observations row."""
    return ObservationRecord(id=row["id"], arm=row["arm"], reward=row["reward"], sequence=row["sequence"])


def reply_values(experiment_id: int, reply: StoredReply) -> Values:
    """A whole replies row."""
    return {"experiment_id": experiment_id} | asdict(reply)


def reply_from(row: Row) -> StoredReply:
    """A replies row."""
    return StoredReply(
        route=row["route"],
        key=row["key"],
        body_hash=row["body_hash"],
        status=row["status"],
        body=bytes(row["body"]),
        created_at=row["created_at"],
    )
