"""Domain objects as the JSON that callers see."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

if TYPE_CHECKING:
    from service.application.asks import Answer
    from service.application.experiments import Described
    from service.application.history import Course, Point
    from service.application.recommending import Recommendation
    from service.domain import Arm, Assignment, Event, Json, PolicySpec, RewardSpec

_encoder = msgspec.json.Encoder()


def encode(content: object) -> bytes:
    """JSON bytes."""
    try:
        return _encoder.encode(content)
    except OverflowError:  # an integer beyond 64 bits in an arm's value, handed back untouched
        plain = json.dumps(content, default=structs.asdict, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return plain.encode()


@lru_cache(maxsize=256)
def time_text(microseconds: int | None) -> str | None:
    """UTC in ISO 8601. What was decided together has one time."""
    if microseconds is None:
        return None
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_second_text(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    """Answers of the same second share its text."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def arm_view(arm: Arm) -> dict[str, Any]:
    """An arm."""
    return {
        "key": arm.key,
        "name": arm.name,
        "value": arm.value,
        "min_share": arm.min_share,
        "status": arm.status,
    }


def _policy_view(policy: PolicySpec) -> dict[str, Any]:
    shown = {"simple_tracking": ("kind", "seed", "sharpness"), "uniform": ("kind", "seed")}
    every = asdict(policy)
    return {name: every[name] for name in shown.get(policy.kind, tuple(every))}


def _reward_view(reward: RewardSpec) -> dict[str, Any]:
    view: dict[str, Any] = {"kind": reward.kind, "goal": reward.goal}
    return view | ({"min": reward.minimum, "max": reward.maximum} if reward.kind == "bounded" else {})


def experiment_view(described: Described) -> dict[str, Any]:
    """An experiment with its arms."""
    progress, records = described
    experiment = progress.experiment
    served = experiment.concluded_arm
    return {
        "key": experiment.key,
        "name": experiment.name,
        "description": experiment.description,
        "status": experiment.status,
        "arms": [arm_view(record.arm) for record in records],
        "policy": _policy_view(experiment.policy),
        "reward": _reward_view(experiment.reward),
        "expiry": asdict(experiment.expiry) if experiment.expiry else None,
        "sticky": experiment.sticky,
        "confidence": experiment.confidence,
        "conclude_when": asdict(experiment.conclude_when) if experiment.conclude_when else None,
        "concluded_arm": None if served is None else records[served].arm.key,
        "created_at": time_text(experiment.created_at),
        "version": progress.version,
    }


class AssignmentView(msgspec.Struct, gc=False):
    """An assignment as callers see it. Asks and tells are answered with it, so it is made to be written fast."""

    id: str | None
    experiment: str
    arm: str
    value: Json
    unit: str | None
    draw: int | None
    reason: str
    status: str | None
    reward: float | None
    created_at: str | None
    expires_at: str | None
    rewarded_at: str | None


def assignment_view(experiment: str, arm: Arm, assignment: Assignment, reason: str | None = None) -> AssignmentView:
    """An assignment."""
    state, expires_at, rewarded_at = assignment.state, assignment.expires_at, assignment.rewarded_at
    return AssignmentView(
        assignment.id,
        experiment,
        arm.key,
        arm.value,
        assignment.unit,
        assignment.draw,
        reason or assignment.reason,
        state.status,
        state.reward,
        time_text(assignment.created_at),
        None if expires_at is None else time_text(expires_at),
        None if rewarded_at is None else time_text(rewarded_at),
    )


def answer_view(answer: Answer) -> AssignmentView:
    """The answer to an ask."""
    if answer.assignment is not None:
        return assignment_view(answer.experiment, answer.arm, answer.assignment, answer.reason)
    arm = answer.arm
    return AssignmentView(
        None, answer.experiment, arm.key, arm.value, answer.unit, None, answer.reason, None, None, None, None, None
    )


def recommendation_view(recommendation: Recommendation) -> dict[str, Any]:
    """The recommendation."""
    progress, standings = recommendation.progress, recommendation.standings
    best, runner_up, concluded = recommendation.best, recommendation.runner_up, recommendation.concluded_arm
    return {
        "experiment": progress.experiment.key,
        "status": progress.experiment.status,
        "arm": best.key if best else None,
        "value": best.value if best else None,
        "draws": sum(one.draws for one in standings),
        "observations": sum(one.observations for one in standings),
        "pending": sum(one.pending for one in standings),
        "runner_up": runner_up.key if runner_up else None,
        "gap": recommendation.gap,
        "summary": recommendation.summary,
        "separated": recommendation.separated,
        "confidence": progress.experiment.confidence,
        "method": recommendation.method,
        "assumes": recommendation.assumes,
        "error_estimate": recommendation.error_estimate,
        "drift": recommendation.drift,
        "concluded_arm": concluded.key if concluded else None,
        "version": progress.version,
        "as_of": time_text(progress.as_of),
        "arms": [
            {
                "arm": one.arm.key,
                "name": one.arm.name,
                "status": one.arm.status,
                "draws": one.draws,
                "pending": one.pending,
                "expired": one.expired,
                "observations": one.observations,
                "mean": one.mean,
                "variance": one.variance,
                "interval": one.interval,
                "share": one.share,
                "target_share": one.target_share,
            }
            for one in standings
        ],
    }


def course_view(course: Course) -> dict[str, Any]:
    """The course of an experiment."""
    return {
        "experiment": course.experiment.key,
        "points": [_point_view(point, course.arms) for point in course.points],
    }


def _point_view(point: Point, arms: list[Arm]) -> dict[str, Any]:
    snapshot, total = point.snapshot, sum(point.snapshot.draws)
    return {
        "version": snapshot.sequence,
        "at": time_text(snapshot.at),
        "arm": point.best.key if point.best else None,
        "draws": total,
        "observations": sum(snapshot.observations),
        "error_estimate": point.certainty.error_estimate,
        "separated": point.certainty.separated,
        "arms": [
            {
                "arm": arms[place].key,
                "draws": draws,
                "observations": snapshot.observations[place],
                "mean": snapshot.means[place],
                "interval": point.certainty.intervals[place],
                "share": draws / total if total else 0.0,
                "target_share": snapshot.targets[place],
            }
            for place, draws in enumerate(snapshot.draws)
        ],
    }


def event_view(event: Event, keys: list[str]) -> dict[str, Any]:
    """An entry of the audit log."""
    details = dict(event.details or {})
    for name, state in (("before", event.before), ("after", event.after)):
        if state:
            details[name] = {"status": state.status, "reward": state.reward}
    return {
        "sequence": event.sequence,
        "kind": event.kind,
        "at": time_text(event.at),
        "arm": None if event.arm is None else keys[event.arm],
        "assignment": event.draw,
        "details": details,
    }
