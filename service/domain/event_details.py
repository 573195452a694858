"""Settings as JSON, as the history keeps them, and back: what `created`, `patch` and arm events carry."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from service.domain import Arm, ConcludeWhen, Experiment, Expiry, PolicySpec, RewardSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.domain import Json

# How each composite field is read back.
_PARTS: dict[str, Any] = {
    "policy": PolicySpec,
    "reward": RewardSpec,
    "expiry": Expiry,
    "conclude_when": ConcludeWhen,
}


def created_details(experiment: Experiment, arms: Sequence[Arm]) -> dict[str, Json]:
    """All that an experiment begins with."""
    settings = _as_json(experiment)
    del settings["id"], settings["pruned_at"]
    return {"experiment": settings, "arms": [asdict(arm) for arm in arms]}


def created_from(details: Mapping[str, Any], experiment_id: int) -> tuple[Experiment, list[Arm]]:
    """The inverse of `created_details`."""
    settings = dict(details["experiment"])
    parts = _read_parts(settings)
    return Experiment(id=experiment_id, **{**settings, **parts}), [Arm(**arm) for arm in details["arms"]]


def arm_details(arm: Arm) -> dict[str, Json]:
    """All about a new arm."""
    return {"arm": asdict(arm)}


def arm_from(details: Mapping[str, Any]) -> Arm:
    """The arm of such details."""
    return Arm(**details)


def change_details(before: Experiment | Arm, after: Experiment | Arm) -> dict[str, Json]:
    """The fields that differ, as they were and as they are."""
    old, new = _as_json(before), _as_json(after)
    # Compared as JSON, because an arm's value may turn from 1 into true, which Python holds for equal.
    changed = [name for name in old if json.dumps(old[name]) != json.dumps(new[name])]
    return {"before": {name: old[name] for name in changed}, "after": {name: new[name] for name in changed}}


def changed_experiment(experiment: Experiment, details: Mapping[str, Any]) -> Experiment:
    """The experiment after a recorded change."""
    after = details["after"]
    return replace(experiment, **{**after, **_read_parts(after)})


def changed_arm(arm: Arm, details: Mapping[str, Any]) -> Arm:
    """The arm after a recorded change."""
    return replace(arm, **details["after"])


def _as_json(settings: Experiment | Arm) -> dict[str, Any]:
    """As it comes back from JSON, which has no tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}


def _read_parts(settings: Mapping[str, Any]) -> dict[str, Any]:
    tags = {"tags": tuple(settings["tags"])} if "tags" in settings else {}
    return tags | {name: _PARTS[name](**settings[name]) for name in _PARTS if settings.get(name) is not None}
