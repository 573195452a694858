"""The history: every change of an experiment as one event with the next number of the experiment's sequence. Append-only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from service.domain.assignment import Assignment, AssignmentState
from service.domain.settings import Json
from service.domain.statistics import ArmRecord, Progress

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
]

# What people did to the experiment, as against what its traffic did: the audit log shows these.
AUDITED: tuple[EventKind, ...] = (
    "created",
    "lifecycle",
    "patch",
    "arm_added",
    "arm_changed",
    "correction",
    "void",
    "expiry_run",
)


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


@dataclass(frozen=True, slots=True)
class Batch:
    """A planned batch of Almost Tracking: part of the history."""

    number: int
    sequence: int
    """Of the draw that planned it."""
    positions: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The statistics at one point of the course: what the history charts are drawn from. One list entry per arm."""

    sequence: int
    at: int
    draws: list[int]
    observations: list[int]
    means: list[float | None]
    """As the recommendation shows them."""
    matured: list[int]
    matured_means: list[float | None]
    matured_variances: list[float | None]
    targets: list[float]
    active: list[bool]

    def share(self, arm: int) -> float:
        """The arm's part of the draws; 0 before it was there."""
        total = sum(self.draws)
        return self.draws[arm] / total if total and arm < len(self.draws) else 0.0


@dataclass(frozen=True, slots=True)
class ObservationRecord:
    """A named observation: its id takes effect once."""

    id: str
    arm: int
    reward: float
    sequence: int


@dataclass(frozen=True, slots=True)
class StoredReply:
    """The first answer to a request with an idempotency key."""

    route: str
    key: str
    body_hash: str
    status: int
    body: bytes
    created_at: int


class Changes(msgspec.Struct):
    """All that one transaction does to one experiment. Filled while deciding, written at once, nothing in between."""

    progress: Progress
    arms: list[ArmRecord] = msgspec.field(default_factory=list)
    drawn_arms: list[ArmRecord] = msgspec.field(default_factory=list)
    """Those that were drawn, and nothing else happened to them: their counts of draws alone changed. Not the arm of a lone draw,
    which is in `progress.uncounted`."""
    redefined: list[ArmRecord] = msgspec.field(default_factory=list)
    """Those of them whose name, value, floor or status changed."""
    new_arms: list[ArmRecord] = msgspec.field(default_factory=list)
    events: list[Event] = msgspec.field(default_factory=list)
    """All but the draws, whose events are made of `drawn`."""
    drawn: list[Assignment] = msgspec.field(default_factory=list)
    """As they were when drawn."""
    moved: list[Assignment] = msgspec.field(default_factory=list)
    """As they are now, those that were drawn or moved before in the same transaction. What became of the others is
    what their event says."""
    batches: list[Batch] = msgspec.field(default_factory=list)
    observations: list[ObservationRecord] = msgspec.field(default_factory=list)
    replies: list[StoredReply] = msgspec.field(default_factory=list)
    settings_changed: bool = False
    snapshots: list[Snapshot] = msgspec.field(default_factory=list)
    thin: bool = False
    """The stride of the snapshots has doubled: every second one of those before goes."""

    def is_draws(self) -> bool:
        """Nothing but draws, which change nothing else about their arms. The row of a lone one's arm does not count it yet."""
        other = self.arms or self.events or self.snapshots or self.replies or self.moved or self.batches or self.observations
        return bool(self.drawn) and not (other or self.new_arms or self.redefined or self.settings_changed or self.thin)

    def is_plain(self) -> bool:
        """Nothing but draws and rewards, each of another assignment."""
        rest = self.moved or self.batches or self.observations or self.new_arms or self.redefined
        return not rest and not self.settings_changed and not self.thin
