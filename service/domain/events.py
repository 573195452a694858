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
EventAuthor: TypeAlias = Literal["people", "operator", "watch", "sweep"]


class EventTraits(NamedTuple):
    """What a kind of event is: what it changes, which decides how it is repeated, and who makes it happen."""

    family: EventFamily
    author: EventAuthor | None = None
    """Callers of the API, who runs the service, its watch over verdicts, or its sweep; None for traffic, which no log shows."""
    revises: bool = False
    """It changes an arm's data other than by one more reward of its own traffic: what was shown about that arm ends."""

    @property
    def audited(self) -> bool:
        """It shows in the audit log: people did it, or will ask for it."""
        return self.author is not None


TRAITS: dict[EventKind, EventTraits] = {
    "created": EventTraits("creation", author="people"),
    "lifecycle": EventTraits("settings", author="people"),
    "patch": EventTraits("settings", author="people"),
    "arm_added": EventTraits("new arm", author="people"),
    "arm_changed": EventTraits("arm", author="people"),
    "draw": EventTraits("draw"),
    "observation": EventTraits("observation", revises=True),
    "reward": EventTraits("step"),
    "expiry": EventTraits("step"),
    "maturity": EventTraits("step"),
    "correction": EventTraits("step", author="people", revises=True),
    "void": EventTraits("step", author="people", revises=True),
    "expiry_run": EventTraits("note", author="sweep"),
    "observation_edit": EventTraits("observation step", author="people", revises=True),
    "observation_void": EventTraits("observation step", author="people", revises=True),
    "separated": EventTraits("note", author="watch"),
    "harmful": EventTraits("note", author="watch"),
    "beats_control": EventTraits("note", author="watch"),
    "decided": EventTraits("note", author="watch"),
    "pruned": EventTraits("settings", author="operator"),
    "forgotten": EventTraits("note", author="operator"),
    "renamed": EventTraits("settings", author="operator"),
    "leader_changed": EventTraits("note", author="watch"),
    "drift_noticed": EventTraits("note", author="watch"),
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
