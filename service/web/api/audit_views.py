"""Events of the audit log in the words of the contract: as callers name arms, assignments, rewards and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.domain import ConcludeWhen, PolicySpec, RewardSpec
from service.web.api.views import policy_view, reward_view, rule_view, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.application.reads.audit_log import AuditPage
    from service.domain import Event

# What the history keeps for itself: where things stand, and what the entry says in other words.
_OWN = {"id", "position", "added", "last_move"}
# How the history's words for a field become the contract's; all others are the same.
_WORDS: dict[str, Callable[[Any, Mapping[int, str]], Any]] = {
    "policy": lambda policy, _: policy_view(PolicySpec(**policy)),
    "reward": lambda reward, _: reward_view(RewardSpec(**reward)),
    "conclude_when": lambda rule, _: None if rule is None else rule_view(ConcludeWhen(**rule)),
    "created_at": lambda time, _: time_text(time),
    "pruned_at": lambda time, _: time_text(time),
    "concluded_arm": lambda position, keys: keys.get(position),
    "control": lambda position, keys: keys.get(position),
}


def event_view(event: Event, page: AuditPage) -> dict[str, Any]:
    """An entry of the audit log."""
    actor, details = worded_details(event, page.arm_keys)
    for name, state in (("before", event.before), ("after", event.after)):
        if state:
            details[name] = {"status": state.status, "reward": state.reward}
    return {
        "sequence": event.sequence,
        "kind": event.kind,
        "at": time_text(event.at),
        "arm": None if event.arm is None else page.arm_keys[event.arm],
        "assignment": None if event.draw is None else page.assignment_ids.get(event.draw),  # it may be pruned
        "draw": event.draw,
        "actor": actor,
        "details": details,
    }


def worded_details(event: Event, arm_keys: Mapping[int, str]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Who did it, and what the event says besides its own fields."""
    details: dict[str, Any] = dict(event.details or {})
    actor = details.pop("actor", None)
    for name in details.keys() & {"experiment", "arm", "before", "after"}:
        details[name] = _settings(details[name], arm_keys)
    for name in details.keys() & {"better", "worse", "best", "previous"}:
        details[name] = arm_keys.get(details[name])
    if "drifting" in details:
        details["drifting"] = [arm_keys[position] for position in details["drifting"]]
    if "arms" in details:
        details["arms"] = [_settings(arm, arm_keys) for arm in details["arms"]]
    return actor, details


def _settings(kept: Mapping[str, Any], arm_keys: Mapping[int, str]) -> dict[str, Any]:
    shown = {name: value for name, value in kept.items() if name not in _OWN}
    if "ofrep_bulk" in shown:
        shown["ofrep"] = {"bulk": shown.pop("ofrep_bulk")}
    return shown | {name: _WORDS[name](shown[name], arm_keys) for name in _WORDS.keys() & shown.keys()}
