"""What webhooks are told of an event: a type, facts in the contract's words, and a sentence."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from service.domain import Arm, Event, EventKind, Experiment, PolicySpec, RewardSpec
from service.domain.announcements import ANNOUNCED, announcement_of, arms_named_in
from service.storage.tables import ANNOUNCED_ONLY

_ARMS = {place: Arm(place, f"a{place}", f"Arm {place}", None) for place in range(9)}


def _experiment() -> Experiment:
    return Experiment(1, "one", "One", "", PolicySpec(), RewardSpec(), None, False, 0.95, None, "running", None, 0)


def _told(kind: EventKind, details: dict[str, Any], arm: int | None = None) -> tuple[str, str, dict[str, Any], bool] | None:
    event = Event(7, kind, 5, arm=arm, details=details)
    named = {place: _ARMS[place] for place in arms_named_in(event)}  # no other may be needed
    told = announcement_of(event, _experiment(), named)
    return None if told is None else (told.type, told.sentence, told.facts, told.is_baseline)


def test_another_leader() -> None:
    """Who leads and who did; the first of an experiment says how things stood; and nobody may lead."""
    assert _told("leader_changed", {"previous": 1}, 2) == (
        "recommendation.changed",
        "Arm 2 has the best mean now, before it was Arm 1.",
        {"arm": "a2", "previous_arm": "a1"},
        False,
    )
    first = _told("leader_changed", {"previous": None, "first": True}, 2)
    assert first == ("recommendation.changed", "Arm 2 has the best mean now.", {"arm": "a2", "previous_arm": None}, True)
    nobody = _told("leader_changed", {"previous": 1}, None)
    assert nobody == ("recommendation.changed", "No arm is recommended any more.", {"arm": None, "previous_arm": "a1"}, False)


def test_separation_is_told_when_it_is_whole() -> None:
    """Not of each pair; and with the arm that is left, which need not be the one of the last pair."""
    pair = {"finding": "separated", "better": 0, "worse": 2, "evidence": 1.0, "level": 0.1}
    assert _told("separated", pair, 2) is None
    assert _told("separated", pair | {"best": 1}, 2) == (
        "experiment.separated",
        "Arm 1 is better than every other active arm, with 95% confidence.",
        {"arm": "a1", "confidence": 0.95},
        False,
    )


@pytest.mark.parametrize(
    ("move", "after", "expected"),
    [
        ("pause", {"status": "paused"}, ("experiment.paused", "The experiment was paused.")),
        (
            "reopen",
            {"status": "paused", "concluded_arm": None},
            ("experiment.paused", "The experiment was reopened, and is paused."),
        ),
        (
            "conclude",
            {"status": "concluded", "concluded_arm": 3},
            ("experiment.concluded", "The experiment was concluded and serves Arm 3."),
        ),
        ("start", {"status": "running"}, None),
        ("resume", {"status": "running"}, None),
        ("archive", {"status": "archived"}, None),
    ],
)
def test_moves(move: str, after: dict[str, Any], expected: tuple[str, str] | None) -> None:
    """Pauses and conclusions are told, with who made them; the contract has no name for the others."""
    told = _told("lifecycle", {"move": move, "by": "request", "before": {}, "after": after, "actor": {"id": "key_1"}})
    assert (told and told[:2]) == expected
    if told is not None:
        facts = {"move": move, "by": "request", "actor": {"id": "key_1"}}
        assert told[2] == facts | ({"arm": "a3"} if move == "conclude" else {})


def test_an_experiment_that_concludes_by_itself_says_so() -> None:
    """By its own rule."""
    after = {"status": "concluded", "concluded_arm": 0}
    told = _told("lifecycle", {"move": "conclude", "by": "conclude_when", "before": {}, "after": after})
    assert told is not None
    assert told[1] == "The experiment was concluded by its own rule and serves Arm 0."


def test_arms() -> None:
    """Added, changed, disabled and enabled; a value is named, and not told."""
    added = _told("arm_added", {"arm": {"key": "a1", "name": "Arm 1", "value": "x" * 9_000, "status": "active"}}, 1)
    assert added is not None
    assert (added[0], added[1], added[2]["after"]) == (
        "arm.changed",
        "Arm 1 was added as an arm.",
        {"name": "Arm 1", "status": "active"},
    )
    changed = _told("arm_changed", {"before": {"value": 1, "min_share": 0.1}, "after": {"value": 2, "min_share": 0.2}}, 1)
    assert changed is not None
    assert changed[1] == "Arm 1 was changed: value, min share."
    assert changed[2] == {
        "arm": "a1",
        "change": "changed",
        "changed": ["value", "min_share"],
        "actor": None,
        "before": {"min_share": 0.1},
        "after": {"min_share": 0.2},
    }
    for status, word in (("disabled", "disabled"), ("active", "enabled")):
        told = _told("arm_changed", {"before": {}, "after": {"status": status}}, 1)
        assert told is not None
        assert told[1] == f"Arm 1 was {word}."


def test_drift() -> None:
    """All arms by their keys, some by their names."""
    told = _told("drift_noticed", {"drifting": [1, 2]})
    assert told is not None
    assert (told[0], told[2]) == ("drift.noticed", {"arms": ["a1", "a2"]})
    assert told[1].startswith("Recent rewards of Arm 1, Arm 2 do not look like earlier ones")
    many = _told("drift_noticed", {"drifting": list(range(9))})
    assert many is not None
    assert "Arm 4 and 4 more do not" in many[1]


def test_the_index_has_the_kinds_that_are_told() -> None:
    """And no other; all of them are kinds of events without a draw."""
    assert set(ANNOUNCED) <= set(get_args(EventKind))
    assert f"draw IS NULL AND kind IN {ANNOUNCED}" == ANNOUNCED_ONLY


def test_other_events_are_told_to_nobody() -> None:
    """A patch, a correction, an expiry run."""
    assert _told("patch", {"before": {}, "after": {}}) is None
    assert _told("expiry_run", {"expired": 3}) is None
