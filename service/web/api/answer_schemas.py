"""What goes out over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.domain import AUDITED, ExperimentStatus, Goal, Ties
from service.domain.limits import ASSIGNMENT_ID_PATTERN, LARGEST_SEED, LONGEST_OBSERVATION_ID
from service.web.api.request_schemas import ConcludeWhenIn, Description, ExpiryIn, Key, Name, OfrepIn, Owner, Tags, Unit

AssignmentId = Annotated[str, Field(pattern=f"^{ASSIGNMENT_ID_PATTERN}$")]
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]


class Answer(BaseModel):
    """A reply."""

    model_config = ConfigDict(extra="forbid")


class SimpleTrackingOut(Answer):
    """Simple Tracking, with its parameters."""

    kind: Literal["simple_tracking"]
    seed: Seed
    sharpness: float
    guard: float
    ties: Ties


class AlmostTrackingOut(Answer):
    """Almost Tracking, with its parameters."""

    kind: Literal["almost_tracking"]
    seed: Seed
    sharpness: float
    guard: float
    ties: Ties
    batch_size: int | None
    sufficiency: float
    sufficiency_by: Literal["planned", "realised"]


class UniformOut(Answer):
    """Every arm gets an equal share."""

    kind: Literal["uniform"]
    seed: Seed


class UnboundedRewardOut(Answer):
    """0 or 1, or any number."""

    kind: Literal["binary", "real"]
    goal: Goal


class BoundedRewardOut(Answer):
    """A number between two."""

    kind: Literal["bounded"]
    goal: Goal
    min: float
    max: float


PolicyOut = Annotated[SimpleTrackingOut | AlmostTrackingOut | UniformOut, Field(discriminator="kind")]
RewardOut = Annotated[UnboundedRewardOut | BoundedRewardOut, Field(discriminator="kind")]


class ArmOut(Answer):
    """An arm."""

    key: Key
    name: Name
    value: Any
    min_share: float
    status: Literal["active", "disabled"]


class ListedArmOut(Answer):
    """An arm in a list: without its value."""

    key: Key
    name: Name
    min_share: float
    status: Literal["active", "disabled"]


class _ExperimentSettingsOut(Answer):
    key: Key
    name: Name
    description: Description
    status: ExperimentStatus
    policy: PolicyOut
    reward: RewardOut
    expiry: ExpiryIn | None
    sticky: bool
    confidence: float
    conclude_when: ConcludeWhenIn | None
    tags: Tags
    owner: Owner | None
    worthwhile: float | None
    control: Key | None
    ofrep: OfrepIn
    concluded_arm: Key | None
    created_at: datetime
    pruned_at: datetime | None = Field(description="When its assignments and single rewards were given up, if they were.")
    version: int


class ExperimentOut(_ExperimentSettingsOut):
    """An experiment."""

    arms: list[ArmOut]


class ListedExperimentOut(_ExperimentSettingsOut):
    """An experiment in a list: without the values of its arms."""

    arms: list[ListedArmOut]


class ExperimentPage(Answer):
    """A page of experiments."""

    experiments: list[ListedExperimentOut]
    next_page_token: str | None


class AssignmentOut(Answer):
    """An assignment; `id` and `draw` are null once the experiment is concluded."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "asg_000000004d23f1c8e0a97b5d264",
                    "experiment": "checkout-button",
                    "arm": "green",
                    "value": {"color": "green"},
                    "unit": "user-42",
                    "draw": 1234,
                    "reason": "track",
                    "status": "pending",
                    "reward": None,
                    "created_at": "2026-01-01T12:00:00.000000Z",
                    "expires_at": "2026-01-02T12:00:00.000000Z",
                    "rewarded_at": None,
                }
            ]
        }
    )

    id: AssignmentId | None
    experiment: Key
    arm: Key
    value: Any
    unit: Unit | None
    draw: int | None
    reason: Literal["warmup", "track", "batch", "uniform", "sticky", "concluded"]
    status: Literal["pending", "rewarded", "expired", "voided"] | None
    reward: float | None
    created_at: datetime | None
    expires_at: datetime | None
    rewarded_at: datetime | None


class AssignmentsOut(Answer):
    """Assignments in the order of the request."""

    assignments: list[AssignmentOut]
    values: dict[str, Any] = Field(
        default={},
        description="The value of each arm, by its key, where repeating the values would take more than 1 MiB:"
        " then `value` of the assignments is null. Absent otherwise.",
    )


class AssignmentPage(Answer):
    """A page of assignments, newest first."""

    assignments: list[AssignmentOut]
    next_page_token: str | None


class TellResultOut(Answer):
    """What became of one item."""

    status: Literal["recorded", "duplicate", "conflict", "not_found", "invalid"]
    detail: str | None = None
    assignment: str | None = None


class TellResultsOut(Answer):
    """One result per item, in order."""

    results: list[TellResultOut]


class RefusedLineOut(Answer):
    """A line that counts nothing."""

    line: int
    status: Literal["conflict", "not_found", "invalid"]
    detail: str | None


class ToldLinesOut(Answer):
    """What became of a stream of observations; empty lines are left out."""

    lines: int
    recorded: int
    duplicate: int
    conflict: int
    not_found: int
    invalid: int
    refused: list[RefusedLineOut] = Field(description="The first lines that count nothing, at most 100.")


class ObservationOut(Answer):
    """A reward that came without an ask; one without an `id` cannot be changed."""

    id: Annotated[str, Field(min_length=1, max_length=LONGEST_OBSERVATION_ID)] | None
    experiment: Key
    arm: Key
    reward: float | None
    status: Literal["rewarded", "voided"]
    observed_at: datetime
    sequence: int


class ObservationPage(Answer):
    """A page of observations, newest first."""

    observations: list[ObservationOut]
    next_page_token: str | None


class ActorOut(Answer):
    """The key that something was done with."""

    id: str
    label: str | None


class EventOut(Answer):
    """One entry of the audit log."""

    sequence: int
    kind: Annotated[str, Field(json_schema_extra={"enum": list(AUDITED)})]
    at: datetime
    arm: Key | None
    assignment: AssignmentId | None = Field(description="The assignment concerned.")
    draw: int | None = Field(description="Its draw number.")
    actor: ActorOut | None = Field(description="Who did it; null where it was the service itself, or there were no keys.")
    details: dict[str, Any]


class EventPage(Answer):
    """A page of the audit log, newest first."""

    events: list[EventOut]
    next_page_token: str | None
