"""What webhooks are told of an experiment's history: some of its events, each as a type, facts, and a sentence for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from service.domain.events import Event, EventKind
    from service.domain.experiment import Arm, Experiment, Json
    from service.domain.webhooks import WebhookEvent

# The parts of an arm that are told as they were and are. Its value may be large, and is only said to have changed.
_TOLD_OF_ARM = ("name", "min_share", "status")
# Names in one sentence.
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event as it is told."""

    type: WebhookEvent
    sequence: int
    at: int
    sentence: str
    facts: dict[str, Json]
    is_baseline: bool = False
    """It says how things stood when somebody began to ask: news only of an experiment that was not there before."""


class _Told(NamedTuple):
    type: WebhookEvent
    sentence: str
    facts: dict[str, Json]
    is_baseline: bool = False


_Arms: TypeAlias = Mapping[int, "Arm"]
_Telling: TypeAlias = "Callable[[Event, dict[str, Any], Experiment, _Arms], _Told | None]"


def announcement_of(event: Event, experiment: Experiment, arms: _Arms) -> Announcement | None:
    """How the event is told, if it is; `arms` has those that it names, by position."""
    telling = _TELLINGS.get(event.kind)
    told = None if telling is None else telling(event, event.details or {}, experiment, arms)
    if told is None:
        return None
    return Announcement(told.type, event.sequence, event.at, told.sentence, told.facts, told.is_baseline)


def arms_named_in(event: Event) -> set[int]:
    """The positions of the arms that one needs to know to tell it."""
    details: dict[str, Any] = event.details or {}
    named = {event.arm, details.get("best"), details.get("previous"), *details.get("drifting", ())}
    if event.kind == "lifecycle":
        named.add(details["after"].get("concluded_arm"))
    return named - {None}


def _leader(event: Event, details: dict[str, Any], _: Experiment, arms: _Arms) -> _Told:
    leader = None if event.arm is None else arms[event.arm]
    previous = None if details["previous"] is None else arms[details["previous"]]
    if leader is None:
        sentence = "No arm is recommended any more."
    else:
        before = "" if previous is None else f", before it was {previous.name}"
        sentence = f"{leader.name} has the best mean now{before}."
    facts: dict[str, Json] = {"arm": None if leader is None else leader.key}
    facts["previous_arm"] = None if previous is None else previous.key
    return _Told("recommendation.changed", sentence, facts, is_baseline=details.get("first", False))


def _separated(_: Event, details: dict[str, Any], experiment: Experiment, arms: _Arms) -> _Told | None:
    """One pair after the other is told apart; the last of them makes the verdict."""
    if "best" not in details:
        return None
    best = arms[details["best"]]
    sure = f"{experiment.confidence * 100:g}% confidence"
    sentence = f"{best.name} is better than every other active arm, with {sure}."
    return _Told("experiment.separated", sentence, {"arm": best.key, "confidence": experiment.confidence})


def _moved(_: Event, details: dict[str, Any], __: Experiment, arms: _Arms) -> _Told | None:
    after = details["after"]
    by: dict[str, Json] = {"move": details["move"], "by": details["by"], "actor": details.get("actor")}
    if after["status"] == "paused":
        was = "reopened, and is paused" if details["move"] == "reopen" else "paused"
        return _Told("experiment.paused", f"The experiment was {was}.", by)
    if after["status"] == "concluded":
        served = arms[after["concluded_arm"]]
        rule = " by its own rule" if details["by"] == "conclude_when" else ""
        sentence = f"The experiment was concluded{rule} and serves {served.name}."
        return _Told("experiment.concluded", sentence, by | {"arm": served.key})
    return None


def _arm_added(event: Event, details: dict[str, Any], _: Experiment, arms: _Arms) -> _Told:
    arm = arms[event.arm or 0]
    facts: dict[str, Json] = {"arm": arm.key, "change": "added", "changed": [], "before": {}, "after": _told_of(details["arm"])}
    return _Told("arm.changed", f"{arm.name} was added as an arm.", facts | {"actor": details.get("actor")})


def _arm_changed(event: Event, details: dict[str, Any], _: Experiment, arms: _Arms) -> _Told:
    arm, after = arms[event.arm or 0], details["after"]
    fields = ", ".join(after).replace("_", " ")
    what = {"active": "enabled", "disabled": "disabled"}.get(after.get("status"), f"changed: {fields}")
    facts: dict[str, Json] = {"arm": arm.key, "change": "changed", "changed": list(after)}
    facts |= {"before": _told_of(details["before"]), "after": _told_of(after), "actor": details.get("actor")}
    return _Told("arm.changed", f"{arm.name} was {what}.", facts)


def _told_of(arm: Mapping[str, Json]) -> Json:
    return {name: arm[name] for name in _TOLD_OF_ARM if name in arm}


def _drifting(_: Event, details: dict[str, Any], __: Experiment, arms: _Arms) -> _Told:
    moved = [arms[position] for position in details["drifting"]]
    names = [arm.name for arm in moved[:_MOST_NAMED]]
    others = len(moved) - len(names)
    listed = ", ".join(names) + (f" and {others} more" if others else "")
    sentence = f"Recent rewards of {listed} do not look like earlier ones, and what is shown assumes that means stay as they are."
    return _Told("drift.noticed", sentence, {"arms": [arm.key for arm in moved]})


_TELLINGS: dict[EventKind, _Telling] = {
    "leader_changed": _leader,
    "separated": _separated,
    "lifecycle": _moved,
    "arm_added": _arm_added,
    "arm_changed": _arm_changed,
    "drift_noticed": _drifting,
}
ANNOUNCED: tuple[EventKind, ...] = tuple(_TELLINGS)
"""The kinds of events of which some are told."""
