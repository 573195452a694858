"""What one transaction does to one experiment, and the records that it leaves beside the events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from service.domain.assignment import Assignment, AssignmentState
from service.domain.events import Event, EventKind
from service.domain.experiment import Json
from service.domain.findings import Disturbance, Finding
from service.domain.statistics import ArmRecord, Progress


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
    """A named observation: its id takes effect once, and it can be corrected and voided by it."""

    id: str
    arm: int
    reward: float
    """The last one; a voided observation keeps it and counts nothing."""
    sequence: int
    epoch: int
    """The one it arrived in, and counts in for ever."""
    status: Literal["rewarded", "voided"]
    changed: int
    """The sequence number of its last change, its arrival included."""

    @property
    def state(self) -> AssignmentState:
        """What it contributes to its arm: as a rewarded or voided assignment without a window does."""
        return AssignmentState(self.status, None if self.status == "voided" else self.reward, closed=True)


@dataclass(frozen=True, slots=True)
class StoredReply:
    """The first answer to a request with an idempotency key."""

    route: str
    key: str
    body_hash: str
    created: bool
    """Did the request create something?"""
    body: bytes
    created_at: int


class TakenStep(msgspec.Struct, frozen=True, gc=False):
    """A step of an assignment: where it led from, and the assignment as it left it. Its event is made when it is needed."""

    sequence: int
    kind: EventKind
    at: int
    before: AssignmentState
    assignment: Assignment
    details: dict[str, Json] | None = None

    @property
    def event(self) -> Event:
        """How the history tells it."""
        moved = self.assignment
        return Event(
            self.sequence, self.kind, self.at, moved.arm, moved.draw, moved.epoch, None, None, moved.expiry_reward,
            self.before, moved.state, self.details,
        )  # fmt: skip


class Changes(msgspec.Struct):
    """All that one transaction does to one experiment. Filled while deciding, written at once, nothing in between."""

    progress: Progress
    arms: list[ArmRecord] = msgspec.field(default_factory=list)
    """Those of which more changed than what a draw changes."""
    drawn_arms: list[ArmRecord] = msgspec.field(default_factory=list)
    """Those that were drawn, and nothing else happened to them: their counts of draws alone changed. Not the arm of a lone draw,
    which is in `progress.uncounted`."""
    imputed_arms: list[ArmRecord] = msgspec.field(default_factory=list)
    """Those that were drawn under a numeric expiry, where a draw counts as a reward for the time being: that changed, too."""
    redefined: list[ArmRecord] = msgspec.field(default_factory=list)
    """Those whose name, value, floor or status changed."""
    new_arms: list[ArmRecord] = msgspec.field(default_factory=list)
    drawn: list[Assignment] = msgspec.field(default_factory=list)
    """As they were when drawn. Their events are made of them."""
    steps: list[TakenStep] = msgspec.field(default_factory=list)
    events: list[Event] = msgspec.field(default_factory=list)
    """All others."""
    restated: list[Assignment] = msgspec.field(default_factory=list)
    """Assignments that this very transaction drew or moved before, as they are now: their rows are written once more."""
    batches: list[Batch] = msgspec.field(default_factory=list)
    observations: list[ObservationRecord] = msgspec.field(default_factory=list)
    changed_observations: list[ObservationRecord] = msgspec.field(default_factory=list)
    """As they are now, also those that this very transaction made."""
    replies: list[StoredReply] = msgspec.field(default_factory=list)
    settings_changed: bool = False
    snapshots: list[Snapshot] = msgspec.field(default_factory=list)
    thin: bool = False
    """The stride of the snapshots has doubled: every second one of those before goes."""
    disturbances: list[Disturbance] = msgspec.field(default_factory=list)
    """What of the findings from before no longer holds."""
    findings: list[Finding] = msgspec.field(default_factory=list)
    """Those that hold from now on."""

    def all_events(self) -> list[Event]:
        """Every event but the draws'."""
        return self.events + [step.event for step in self.steps]

    def is_draws(self) -> bool:
        """Nothing but draws. The row of a lone one's arm may not count it yet."""
        other = self.arms or self.steps or self.events or self.snapshots or self.replies or self.restated or self.batches
        rest = self.observations or self.new_arms or self.redefined or self.settings_changed or self.thin
        findings = self.changed_observations or self.disturbances or self.findings
        return bool(self.drawn) and not (other or rest or findings)

    def is_plain(self) -> bool:
        """Nothing but draws and rewards, each of another assignment."""
        rest = self.restated or self.batches or self.observations or self.new_arms or self.redefined
        findings = self.changed_observations or self.disturbances or self.findings
        return not rest and not findings and not self.settings_changed and not self.thin
