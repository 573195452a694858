"""The history: every change of an experiment as one event with the next number of the experiment's sequence. Append-only."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from service.domain.assignment import Assignment, AssignmentState
from service.domain.experiment import Json

EventKind: TypeAlias = Literal[
    "created",
    "lifecycle",
    "patch",
    "arm_added",
    "arm_changed",
    "draw",
    "observation",
    "reward",
    "expiry",
    "maturity",
    "correction",
    "void",
    "expiry_run",
    "observation_edit",
    "observation_void",
    "separated",
    "harmful",
    "beats_control",
    "decided",
    "pruned",
    "forgotten",
    "renamed",
    "leader_changed",
    "drift_noticed",
]
EventFamily: TypeAlias = Literal[
    "creation", "settings", "new arm", "arm", "draw", "observation", "step", "observation step", "note"
]


class EventTraits(NamedTuple):
    """What a kind of event is: what it changes, which decides how it is repeated, and who made it happen."""

    family: EventFamily
    audited: bool
    """It shows in the audit log: people did it, or will ask for it. The rest is traffic."""
    revises: bool = False
    """It changes an arm's data other than by one more reward of its own traffic: what was shown about that arm ends."""


TRAITS: dict[EventKind, EventTraits] = {
    "created": EventTraits("creation", audited=True),
    "lifecycle": EventTraits("settings", audited=True),
    "patch": EventTraits("settings", audited=True),
    "arm_added": EventTraits("new arm", audited=True),
    "arm_changed": EventTraits("arm", audited=True),
    "draw": EventTraits("draw", audited=False),
    "observation": EventTraits("observation", audited=False, revises=True),
    "reward": EventTraits("step", audited=False),
    "expiry": EventTraits("step", audited=False),
    "maturity": EventTraits("step", audited=False),
    "correction": EventTraits("step", audited=True, revises=True),
    "void": EventTraits("step", audited=True, revises=True),
    "expiry_run": EventTraits("note", audited=True),
    "observation_edit": EventTraits("observation step", audited=True, revises=True),
    "observation_void": EventTraits("observation step", audited=True, revises=True),
    "separated": EventTraits("note", audited=True),
    "harmful": EventTraits("note", audited=True),
    "beats_control": EventTraits("note", audited=True),
    "decided": EventTraits("note", audited=True),
    "pruned": EventTraits("settings", audited=True),
    "forgotten": EventTraits("note", audited=True),
    "renamed": EventTraits("settings", audited=True),
    "leader_changed": EventTraits("note", audited=True),
    "drift_noticed": EventTraits("note", audited=True),
}
AUDITED: tuple[EventKind, ...] = tuple(kind for kind, traits in TRAITS.items() if traits.audited)
UNAUDITED: tuple[EventKind, ...] = tuple(kind for kind, traits in TRAITS.items() if not traits.audited)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change. Assignment events carry the state before and after, so that each can be checked on its own."""

    sequence: int
    kind: EventKind
    at: int
    arm: int | None = None
    draw: int | None = None
    epoch: int | None = None
    reason: str | None = None
    expires_at: int | None = None
    expiry_reward: float | None = None
    before: AssignmentState | None = None
    after: AssignmentState | None = None
    details: dict[str, Json] | None = None


def event_of_draw(drawn: Assignment) -> Event:
    """How the history tells a draw."""
    return Event(
        sequence=drawn.sequence,
        kind="draw",
        at=drawn.created_at,
        arm=drawn.arm,
        draw=drawn.draw,
        epoch=drawn.epoch,
        reason=drawn.reason,
        expires_at=drawn.expires_at,
        expiry_reward=drawn.expiry_reward,
        after=drawn.state,
    )
