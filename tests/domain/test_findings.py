"""Findings hold from the first time on, until what they rest on is disturbed."""

from __future__ import annotations

import pytest

from service.domain.events import TRAITS, Event, EventKind
from service.domain.experiment import Json
from service.domain.findings import EVENT_KINDS, Disturbance, Finding, FindingKind, Findings, disturbances_of, finding_of

_SEPARATED = Finding("separated", better=1, worse=0, evidence=5.0, level=0.01)
_HARMFUL = Finding("harmful", better=2, worse=0, evidence=5.0, level=0.01)
_BEATS = Finding("beats_control", better=1, worse=2, evidence=5.0, level=0.01)
_NOTHING = Finding("nothing_worthwhile", better=1, worse=None, evidence=5.0, level=0.01)
_ALL = (_SEPARATED, _HARMFUL, _BEATS, _NOTHING)


def told(finding: Finding, sequence: int = 2) -> Event:
    """The event that tells a finding."""
    return Event(sequence, EVENT_KINDS[finding.kind], sequence * 10, arm=finding.arm, details=finding.details())


def held_after(*events: Event) -> set[FindingKind]:
    """The kinds of the findings that hold after all were found and these events followed."""
    findings = Findings()
    for number, finding in enumerate(_ALL):
        findings.follow(told(finding, number + 2))
    for event in events:
        findings.follow(event)
    return {kind for kind, _ in findings.held}


def test_a_finding_is_read_back_from_its_event() -> None:
    """Its event has all of it, and gives it its number and its time."""
    for finding in _ALL:
        again = finding_of(told(finding, 7))
        assert again is not None
        assert (again.sequence, again.at) == (7, 70)
        assert again.details() == finding.details()


def test_the_first_finding_about_an_arm_stays() -> None:
    """The same found again, against another arm, changes nothing."""
    findings = Findings()
    findings.follow(told(_SEPARATED, 3))
    findings.follow(told(Finding("separated", better=2, worse=0, evidence=9.0, level=0.001), 4))
    assert [(one.better, one.sequence) for one in findings.held.values()] == [(1, 3)]


@pytest.mark.parametrize("kind", ["correction", "void", "observation", "observation_edit", "observation_void"])
def test_data_of_an_arm_ends_what_concerns_the_arm(kind: EventKind) -> None:
    """Of two arms, whichever it is; what compares one with all others concerns every arm."""
    assert held_after(Event(9, kind, 90, arm=0)) == {"beats_control"}
    assert held_after(Event(9, kind, 90, arm=2)) == {"separated"}
    assert held_after(Event(9, kind, 90, arm=3)) == {"separated", "harmful", "beats_control"}


@pytest.mark.parametrize("kind", ["draw", "reward", "expiry", "maturity", "lifecycle", "expiry_run", "created"])
def test_traffic_and_moves_end_nothing(kind: EventKind) -> None:
    """More rewards of an arm's own traffic do not take back what was shown."""
    assert held_after(Event(9, kind, 90, arm=0)) == {"separated", "harmful", "beats_control", "nothing_worthwhile"}


@pytest.mark.parametrize(
    ("kind", "after", "left"),
    [
        ("arm_added", None, set()),
        ("arm_changed", {"status": "disabled"}, set()),
        ("arm_changed", {"name": "B"}, {"separated", "harmful", "beats_control", "nothing_worthwhile"}),
        ("patch", {"confidence": 0.9}, set()),
        ("patch", {"control": 1}, {"separated", "nothing_worthwhile"}),
        ("patch", {"worthwhile": 0.1}, {"separated", "beats_control"}),
        ("patch", {"name": "x", "tags": []}, {"separated", "harmful", "beats_control", "nothing_worthwhile"}),
    ],
)
def test_settings_end_what_was_judged_by_them(kind: EventKind, after: dict[str, Json] | None, left: set[FindingKind]) -> None:
    """The set of active arms and the confidence end all, control and worthwhile their own, names nothing."""
    details: dict[str, Json] | None = None if after is None else {"before": {}, "after": after}
    assert held_after(Event(9, kind, 90, arm=0, details=details)) == left


def test_a_disturbance_of_some_kinds_leaves_the_others() -> None:
    """Kinds and arms are both asked for."""
    disturbance = Disturbance(0, ("harmful",))
    assert [disturbance.ends(finding) for finding in _ALL] == [False, True, False, False]
    assert disturbances_of(Event(9, "reward", 90, arm=0)) == []


def test_whoever_keeps_a_finding_sees_what_revised_its_data() -> None:
    """A worker that keeps a finding looks through the audit log and the observations since it was seen, and nowhere else."""
    assert {kind for kind, traits in TRAITS.items() if traits.revises and not traits.audited} == {"observation"}
