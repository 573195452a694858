"""Domain objects as the JSON that callers see."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from service.domain.limits import MOST_REPEATED_VALUE_BYTES
from service.engine import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.commands.ask import AskAnswer
    from service.application.commands.experiments import Described
    from service.application.commands.tell import TellResult
    from service.application.reads.course import Course, Point
    from service.application.reads.experiment_descriptions import Listed
    from service.application.reads.forecast import Outlook
    from service.application.reads.observation_list import Observation
    from service.application.reads.recommendation import Recommendation, Standing
    from service.domain import Arm, Assignment, ConcludeWhen, Json, PolicySpec, Progress, RewardSpec
    from service.inference.verdict import Verdict

_LISTED_OF_ARM = ("key", "name", "min_share", "status")
_encoder = msgspec.json.Encoder()
time_text = clock.time_text


def encode(content: object) -> bytes:
    """JSON bytes."""
    try:
        return _encoder.encode(content)
    except OverflowError:  # an integer beyond 64 bits in an arm's value, handed back untouched
        plain = json.dumps(content, default=structs.asdict, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return plain.encode()


def arm_view(arm: Arm) -> dict[str, Any]:
    """An arm."""
    return {
        "key": arm.key,
        "name": arm.name,
        "value": arm.value,
        "min_share": arm.min_share,
        "status": arm.status,
    }


def policy_view(policy: PolicySpec) -> dict[str, Any]:
    """A policy with the parameters that it has."""
    shown: tuple[str, ...] = ("kind", "seed")
    if policy.kind != "uniform":
        shown += ("sharpness", "guard", "ties")
    if policy.kind == "almost_tracking":
        shown += ("batch_size", "sufficiency", "sufficiency_by")
    return {name: getattr(policy, name) for name in shown}


def reward_view(reward: RewardSpec) -> dict[str, Any]:
    """What a reward may be."""
    view: dict[str, Any] = {"kind": reward.kind, "goal": reward.goal}
    return view | ({"min": reward.minimum, "max": reward.maximum} if reward.kind == "bounded" else {})


def rule_view(rule: ConcludeWhen | None) -> dict[str, Any] | None:
    """When an experiment concludes by itself."""
    if rule is None:
        return None
    waits_for = "beats_control" if rule.beats_control else "decided" if rule.decided else "separated"
    return {waits_for: True, "min_observations": rule.min_observations}


def experiment_view(described: Described) -> dict[str, Any]:
    """An experiment with its arms."""
    progress, records = described
    return _experiment_view(progress, [arm_view(record.arm) for record in records])


def experiment_summary(listed: Listed) -> dict[str, Any]:
    """An experiment in a list: with its arms, but without their values."""
    progress, arms = listed
    return _experiment_view(progress, [{name: getattr(arm, name) for name in _LISTED_OF_ARM} for arm in arms])


def _experiment_view(progress: Progress, arms: list[dict[str, Any]]) -> dict[str, Any]:
    experiment = progress.experiment
    served = experiment.concluded_arm
    return {
        "key": experiment.key,
        "name": experiment.name,
        "description": experiment.description,
        "status": experiment.status,
        "arms": arms,
        "policy": policy_view(experiment.policy),
        "reward": reward_view(experiment.reward),
        "expiry": asdict(experiment.expiry) if experiment.expiry else None,
        "sticky": experiment.sticky,
        "confidence": experiment.confidence,
        "conclude_when": rule_view(experiment.conclude_when),
        "tags": experiment.tags,
        "owner": experiment.owner,
        "worthwhile": experiment.worthwhile,
        "control": None if experiment.control is None else arms[experiment.control]["key"],
        "ofrep": {"bulk": experiment.ofrep_bulk},
        "concluded_arm": None if served is None else arms[served]["key"],
        "created_at": time_text(experiment.created_at),
        "pruned_at": time_text(experiment.pruned_at),
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


def answer_view(answer: AskAnswer) -> AssignmentView:
    """The answer to an ask."""
    if answer.assignment is not None:
        return assignment_view(answer.experiment, answer.arm, answer.assignment, answer.reason)
    arm = answer.arm
    return AssignmentView(
        None, answer.experiment, arm.key, arm.value, answer.unit, None, answer.reason, None, None, None, None, None
    )


def encode_answers(answers: Sequence[AskAnswer]) -> bytes:
    """The answers to a batch of asks as JSON. Values that would be repeated too often stand once beside the assignments."""
    shown = [  # as answer_view shows each, without a call of it for every draw
        answer_view(one) if one.assignment is None else assignment_view(one.experiment, one.arm, one.assignment, one.reason)
        for one in answers
    ]
    times = Counter([view.arm for view in shown])
    values = {view.arm: encode(view.value) for view in {view.arm: view for view in shown}.values()}
    if sum(len(values[key]) * times[key] for key in times) <= MOST_REPEATED_VALUE_BYTES:
        return encode({"assignments": shown})
    for view in shown:
        view.value = None
    return encode({"assignments": shown, "values": {key: msgspec.Raw(written) for key, written in values.items()}})


def encode_results(results: list[TellResult]) -> bytes:
    """What became of the items of a batch of rewards or observations, as JSON."""
    return encode({"results": results})


def observation_view(experiment: str, observation: Observation) -> dict[str, Any]:
    """An observation."""
    return {
        "id": observation.id,
        "experiment": experiment,
        "arm": observation.arm,
        "reward": observation.state.reward,
        "status": observation.state.status,
        "observed_at": time_text(observation.at),
        "sequence": observation.sequence,
    }


def recommendation_view(recommendation: Recommendation) -> dict[str, Any]:
    """The recommendation."""
    progress, standings, verdict = recommendation.progress, recommendation.standings, recommendation.verdict
    best, runner_up, concluded = recommendation.best, recommendation.runner_up, recommendation.concluded_arm
    return {
        "experiment": progress.experiment.key,
        "status": progress.experiment.status,
        "arm": best.key if best else None,
        "value": best.value if best else None,
        "draws": sum(one.draws for one in standings),
        "observations": sum(one.observations for one in standings),
        "pending": sum(one.pending for one in standings),
        "imported": progress.imported,
        "runner_up": runner_up.key if runner_up else None,
        "gap": recommendation.gap,
        "summary": recommendation.summary,
        "verdict": verdict_view(verdict, standings),
        "separated": verdict.separated,
        "separated_at": time_text(verdict.separated_at),
        "decided": verdict.decided,
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
                "evidence": one.evidence,
                "harmful": one.harmful,
                "lift": None if one.lift is None else asdict(one.lift),
                "share": one.share,
                "target_share": one.target_share,
            }
            for one in standings
        ],
    }


def verdict_view(verdict: Verdict, standings: Sequence[Standing]) -> dict[str, Any]:
    """May it stop?"""
    return {
        "state": verdict.state,
        "reason": verdict.reason,
        "arm": None if verdict.arm is None else standings[verdict.arm].arm.key,
        "progress": verdict.progress,
        "held_up_by": None if verdict.held_up_by is None else standings[verdict.held_up_by].arm.key,
        "since": time_text(verdict.since),
    }


def encode_course(course: Course) -> bytes:
    """The course of an experiment as JSON, written point by point: many points of many arms would fill the memory as objects."""
    points = b",".join(encode(_point_view(point, course)) for point in course.points)
    named = encode(course.experiment.key), encode(time_text(course.separated_at))
    return b'{"experiment":%b,"separated_at":%b,"points":[%b]}' % (*named, points)


def forecast_view(outlook: Outlook, within_days: float | None = None) -> dict[str, Any]:
    """When the verdict will be there."""
    found = outlook.forecast
    draws = {"median": found.median, "low": found.low, "high": found.high}
    times = {name: outlook.at(wait) for name, wait in draws.items()}
    known = any(moment is not None for moment in times.values())
    return {
        "draws": draws,
        "at": {name: None if moment is None else time_text(moment) for name, moment in times.items()} if known else None,
        "rate_per_day": outlook.rate_per_day,
        "shortfall_now": found.shortfall,
        "never": found.never,
        "within": None if within_days is None else {"days": within_days, "probability": outlook.probability_within(within_days)},
        "waiting": None if outlook.waiting is None else asdict(outlook.waiting),
        "version": outlook.version,
    }


def _point_view(point: Point, course: Course) -> dict[str, Any]:
    snapshot, total, arms = point.snapshot, sum(point.snapshot.draws), course.arms
    return {
        "version": snapshot.sequence,
        "at": time_text(snapshot.at),
        "arm": point.best.key if point.best else None,
        "draws": total,
        "observations": sum(snapshot.observations),
        "error_estimate": point.certainty.error_estimate,
        "separated": course.separated(point),
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
