"""Findings: what has been shown about arms, kept from the first time on.

A test that is valid at all looks together may reject once and be done: what was shown stays shown, although a later look at
more rewards may not show it again. A finding is an event of the history. It holds until what it rests on is disturbed: data of
an arm concerned is corrected, voided or brought in from elsewhere, the set of active arms changes, or a setting that it was
judged by does. The findings that hold are a projection of the history, the table `findings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from service.domain.events import TRAITS, Event, EventKind
from service.domain.experiment import Arm, Json

FindingKind: TypeAlias = Literal["separated", "harmful", "beats_control", "nothing_worthwhile"]

# The kind of event that tells each kind of finding. To beat the control is a verdict only where `conclude_when` asks for it.
EVENT_KINDS: dict[FindingKind, EventKind] = {
    "separated": "separated",
    "harmful": "harmful",
    "beats_control": "beats_control",
    "nothing_worthwhile": "decided",
}
_ABOUT_THE_WORSE = ("separated", "harmful")


class Finding(msgspec.Struct, frozen=True):
    """Something shown: one arm is better than another, or no arm is worthwhile beside one."""

    kind: FindingKind
    better: int
    worse: int | None
    """None where the better arm was compared with all others."""
    evidence: float
    """The log evidence that was there, at least: the tests look no further than what the level asks for."""
    level: float
    """The error that it was allowed; log evidence of -log(level) was asked for."""
    sequence: int = 0
    """Of its event; 0 while it is only seen and not kept."""
    at: int = 0

    @property
    def arm(self) -> int:
        """The arm that it is about; of one kind there is at most one finding about an arm."""
        return self.worse if self.kind in _ABOUT_THE_WORSE and self.worse is not None else self.better

    def details(self) -> dict[str, Json]:
        """As its event tells it, beside the arm that it is about."""
        return {
            "finding": self.kind,
            "better": self.better,
            "worse": self.worse,
            "evidence": self.evidence,
            "level": self.level,
        }


class Disturbance(NamedTuple):
    """What of the findings no longer holds."""

    arm: int | None
    """Those that concern this arm; None for any arm."""
    kinds: tuple[FindingKind, ...] | None = None
    """Those of these kinds; None for any kind."""

    def ends(self, finding: Finding) -> bool:
        """Does the finding no longer hold?"""
        of_kind = self.kinds is None or finding.kind in self.kinds
        concerned = self.arm is None or finding.worse is None or self.arm in (finding.better, finding.worse)
        return of_kind and concerned


# Settings that findings were judged by.
_JUDGED_BY: dict[str, tuple[FindingKind, ...] | None] = {
    "confidence": None,
    "control": ("harmful", "beats_control"),
    "worthwhile": ("harmful", "nothing_worthwhile"),
}


def disturbances_of(event: Event) -> list[Disturbance]:
    """What an event does to findings."""
    if TRAITS[event.kind].revises:
        return [Disturbance(event.arm)]
    if event.kind == "arm_added":
        return [Disturbance(None)]
    after = (event.details or {}).get("after") if event.kind in ("arm_changed", "patch") else None
    if not isinstance(after, dict):
        return []
    if event.kind == "arm_changed":
        return [Disturbance(None)] if "status" in after else []
    return [Disturbance(None, _JUDGED_BY[name]) for name in after if name in _JUDGED_BY]


def finding_of(event: Event) -> Finding | None:
    """The finding that an event tells, if it is one."""
    told = event.details or {}
    if event.kind not in EVENT_KINDS.values():
        return None
    return msgspec.convert(told | {"kind": told["finding"], "sequence": event.sequence, "at": event.at}, Finding)


def best_of(arms: Sequence[Arm], held: Iterable[Finding]) -> int | None:
    """The one active arm that no other is shown to be better than, if all others are out: it is separated."""
    active = {arm.position for arm in arms if arm.active}
    left = active - {one.arm for one in held if one.kind == "separated" and one.better in active}
    return next(iter(left)) if len(active) > 1 == len(left) else None


class Findings:
    """The findings that hold after some events."""

    def __init__(self, held: dict[tuple[FindingKind, int], Finding] | None = None) -> None:
        self.held: dict[tuple[FindingKind, int], Finding] = held or {}

    def follow(self, event: Event) -> None:
        """What holds after this event."""
        for disturbance in disturbances_of(event):
            self.end(disturbance)
        finding = finding_of(event)
        if finding is not None:
            self.held.setdefault((finding.kind, finding.arm), finding)

    def end(self, disturbance: Disturbance) -> None:
        """Drop what it ends."""
        self.held = {name: finding for name, finding in self.held.items() if not disturbance.ends(finding)}
