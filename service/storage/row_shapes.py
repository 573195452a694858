"""What a row of each table of an experiment may hold, column by column in the tables' own order, without the experiment's id.

Rows that come from a file are read into these shapes: a type, a name, a count or a time that no service could have stored is
refused before it meets the database, or a reader that trusts it. What one row says of another is checked where they are loaded.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from service.domain import ArmStatus, AssignmentStatus, EventKind, ExperimentStatus, Move
from service.domain.findings import FindingKind
from service.domain.limits import (
    KEY_PATTERN,
    LAST_MOMENT,
    LONGEST_DESCRIPTION,
    LONGEST_IDEMPOTENCY_KEY,
    LONGEST_NAME,
    LONGEST_OBSERVATION_ID,
    LONGEST_OWNER,
    LONGEST_UNIT,
)

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number: TypeAlias = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Position: TypeAlias = Annotated[int, Meta(ge=0, lt=2**31)]
Epoch: TypeAlias = Annotated[int, Meta(ge=1, lt=2**31)]
Time: TypeAlias = Annotated[int, Meta(ge=0, le=LAST_MOMENT)]
Key: TypeAlias = Annotated[str, Meta(pattern=f"^{KEY_PATTERN}\\Z")]
Name: TypeAlias = Annotated[str, Meta(max_length=LONGEST_NAME)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
# An integer, or an integer over a power of two (service/exact.py); as long as sums of the largest rewards can become, and more.
Exact: TypeAlias = Annotated[str, Meta(pattern=r"^-?[0-9]{1,4000}(/2\^[0-9]{1,4})?\Z")]
Reason: TypeAlias = Literal["warmup", "track", "batch", "uniform"]


class Shape(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A row, as an array in the order of the columns."""


class ExperimentShape(Shape):
    """A row of `experiments`."""

    key: Key
    name: Name
    description: Annotated[str, Meta(max_length=LONGEST_DESCRIPTION)]
    policy: str
    reward: str
    expiry: str | None
    sticky: bool
    confidence: float
    conclude_when: str | None
    status: ExperimentStatus
    concluded_arm: Position | None
    created_at: Time
    version: Number
    as_of: Time
    draws: Count
    epoch: Epoch
    batch: Count
    plan_cursor: Position
    plan_averaged: Count
    may_expire: bool
    observed: bool
    snapshot_at: Count
    snapshot_stride: Number
    uncounted: Annotated[str, Meta(pattern=r"^([0-9]{1,5}(,[0-9]{1,5}){0,15})?\Z")]
    tags: str
    owner: Annotated[str, Meta(max_length=LONGEST_OWNER)] | None
    last_move: Move | None
    worthwhile: float | None
    control: Position | None
    ofrep_bulk: bool
    pruned_at: Time | None
    imported: Count


class ArmShape(Shape):
    """A row of `arms`."""

    position: Position
    key: Key
    name: Name
    value: str
    min_share: Share
    status: ArmStatus
    added: Position
    changed: Count
    pending: Count
    expired: Count
    epoch_draws: Count
    observations: Count
    reward_sum: Exact
    reward_squares: Exact
    imputed: Count
    imputed_sum: Exact
    imputed_squares: Exact
    matured: Count
    matured_sum: Exact
    matured_squares: Exact
    earlier: Count
    earlier_sum: Exact
    earlier_squares: Exact
    planned: Count
    plan_left: Count
    plan_weight_sum: float


class AssignmentShape(Shape):
    """A row of `assignments`."""

    draw: Number
    token: Count
    sequence: Number
    arm: Position
    unit: Annotated[str, Meta(min_length=1, max_length=LONGEST_UNIT)] | None
    reason: Reason
    epoch: Epoch
    created_at: Time
    expires_at: Time | None
    expiry_reward: float | None
    status: AssignmentStatus
    reward: float | None
    closed: bool
    rewarded_at: Time | None
    due_at: Time | None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=LONGEST_IDEMPOTENCY_KEY)] | None


class EventShape(Shape):
    """A row of `events`."""

    sequence: Number
    kind: EventKind
    at: Time
    arm: Position | None
    draw: Number | None
    epoch: Epoch | None
    reason: Reason | None
    expires_at: Time | None
    expiry_reward: float | None
    status_before: AssignmentStatus | None
    reward_before: float | None
    closed_before: bool | None
    status_after: AssignmentStatus | None
    reward_after: float | None
    closed_after: bool | None
    details: str | None


class BatchShape(Shape):
    """A row of `batches`."""

    number: Number
    sequence: Number
    positions: str
    counts: str


class SnapshotShape(Shape):
    """A row of `snapshots`."""

    sequence: Number
    at: Time
    body: bytes


class ObservationShape(Shape):
    """A row of `observations`."""

    id: Annotated[str, Meta(min_length=1, max_length=LONGEST_OBSERVATION_ID)]
    arm: Position
    reward: float
    sequence: Number
    status: Literal["rewarded", "voided"]
    epoch: Epoch
    changed: Number


class FindingShape(Shape):
    """A row of `findings`."""

    kind: FindingKind
    arm: Position
    better: Position
    worse: Position | None
    evidence: float
    level: float
    sequence: Number
    at: Time


class ReplyShape(Shape):
    """A row of `replies`."""

    route: Annotated[str, Meta(max_length=32)]
    key: Annotated[str, Meta(max_length=LONGEST_IDEMPOTENCY_KEY)]
    body_hash: Annotated[str, Meta(max_length=64)]
    status: Literal[200, 201]
    body: bytes
    created_at: Time


class PruningShape(Shape):
    """A row of `prunings`."""

    table_name: Annotated[str, Meta(max_length=32)]
    last_row: str | None
    removed: Count


SHAPES: dict[str, type[Shape]] = {
    "experiments": ExperimentShape,
    "arms": ArmShape,
    "assignments": AssignmentShape,
    "events": EventShape,
    "batches": BatchShape,
    "snapshots": SnapshotShape,
    "observations": ObservationShape,
    "findings": FindingShape,
    "replies": ReplyShape,
    "prunings": PruningShape,
}
