"""What goes in and out over HTTP. Requests are strict: unknown fields, booleans for numbers and numbers as text are refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, SkipValidation, model_validator

from service.domain import LARGEST_REWARD, ExperimentStatus

LARGEST_SEED = 2**53 - 1
MOST_VALUE_BYTES = 16 * 1024
MOST_ITEMS = 10_000

Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", examples=["checkout-button"])]
Unit = Annotated[str, Field(min_length=1, max_length=255, examples=["user-42"])]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST_REWARD, le=LARGEST_REWARD)]
Name = Annotated[str, Field(max_length=255)]
Description = Annotated[str, Field(max_length=10_000)]


def _small(value: JsonValue) -> JsonValue:
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > MOST_VALUE_BYTES:
        raise ValueError("A value may take at most 16 KiB as JSON.")
    return value


Value = Annotated[JsonValue, AfterValidator(_small)]


class Request(BaseModel):
    """A body: strict and closed."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Answer(BaseModel):
    """A reply."""

    model_config = ConfigDict(extra="forbid")


class ArmIn(Request):
    """An arm to begin with or to add."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"key": "blue", "name": "Blue", "value": {"color": "blue"}}]})

    key: Key
    name: Name | None = None
    value: Value = None
    min_share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0


class ArmPatch(Request):
    """What may change about an arm."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "disabled"}]})

    name: Name = ""
    value: Value = None
    min_share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    status: Literal["active", "disabled"] = "active"


class PolicyIn(Request):
    """Which policy, with its parameters."""

    kind: Literal["simple_tracking", "almost_tracking", "uniform"] = "simple_tracking"
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)] | None = None
    sharpness: Annotated[float, Field(ge=1, le=2, allow_inf_nan=False)] = 1.0
    batch_size: Annotated[int, Field(ge=2, le=1_000_000)] | None = None
    sufficiency: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.999
    sufficiency_by: Literal["planned", "realised"] = "planned"

    @model_validator(mode="after")
    def parameters_belong_to_the_kind(self) -> PolicyIn:
        """A parameter that the policy does not have would be a silent mistake."""
        foreign = {"uniform": {"sharpness", "batch_size", "sufficiency", "sufficiency_by"}}
        foreign["simple_tracking"] = foreign["uniform"] - {"sharpness"}
        misplaced = sorted(foreign.get(self.kind, set()) & self.model_fields_set)
        if misplaced:
            raise ValueError(f"`{misplaced[0]}` is not a parameter of {self.kind}.")
        return self


class RewardIn(Request):
    """What a reward may be."""

    kind: Literal["binary", "bounded", "real"] = "binary"
    goal: Literal["maximize", "minimize"] = "maximize"
    min: Number | None = None
    max: Number | None = None

    @model_validator(mode="after")
    def bounds_belong_to_bounded(self) -> RewardIn:
        """`bounded` needs both bounds, in order; the others take none."""
        if self.kind != "bounded":
            if self.min is not None or self.max is not None:
                raise ValueError(f"`min` and `max` are not for {self.kind} rewards.")
        elif self.min is None or self.max is None:
            raise ValueError("`bounded` rewards need `min` and `max`.")
        elif self.min >= self.max:
            raise ValueError("`min` must be below `max`.")
        return self


class ExpiryIn(Request):
    """What silence means."""

    after_seconds: Annotated[float, Field(gt=0, le=315_360_000, allow_inf_nan=False)]
    reward: Number | None = None


class ConcludeWhenIn(Request):
    """When the experiment concludes by itself."""

    separated: Literal[True] = True
    min_observations: Annotated[int, Field(ge=0, le=10**15)] = 0


class ExperimentIn(Request):
    """A new experiment."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "key": "checkout-button",
                    "name": "Checkout button",
                    "arms": [
                        {"key": "control", "name": "Grey", "value": {"color": "grey"}},
                        {"key": "green", "name": "Green", "value": {"color": "green"}},
                    ],
                    "reward": {"kind": "binary", "goal": "maximize"},
                    "expiry": {"after_seconds": 86400, "reward": 0},
                }
            ]
        }
    )

    key: Key
    name: Name | None = None
    description: Description = ""
    arms: Annotated[list[ArmIn], Field(min_length=2, max_length=10_000)]
    policy: PolicyIn = PolicyIn()
    reward: RewardIn = RewardIn()
    expiry: ExpiryIn | None = None
    sticky: bool = False
    confidence: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.95
    conclude_when: ConcludeWhenIn | None = None
    status: Literal["draft", "running"] = "running"

    @model_validator(mode="after")
    def arm_keys_differ(self) -> ExperimentIn:
        """Arms are told apart by their keys."""
        seen: set[str] = set()
        for arm in self.arms:
            if arm.key in seen:
                raise ValueError(f"The arm key {arm.key!r} is used twice.")
            seen.add(arm.key)
        return self


class ExperimentPatch(Request):
    """What may change about an experiment; fields left out stay."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Checkout", "expiry": {"after_seconds": 3600, "reward": 0}}]}
    )

    name: Name = ""
    description: Description = ""
    expiry: ExpiryIn | None = None
    confidence: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.95
    conclude_when: ConcludeWhenIn | None = None
    sticky: bool = False
    policy: PolicyIn = PolicyIn()
    reward: RewardIn = RewardIn()


class ConcludeIn(Request):
    """Which arm to serve from now on; without it, the recommendation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"arm": "green"}]})

    arm: Key | None = None


class AskIn(Request):
    """Who asks."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"unit": "user-42"}]})

    unit: Unit | None = None


class AskManyIn(Request):
    """How many ask, or who."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"count": 500}, {"units": ["user-1", "user-2"]}]})

    count: Annotated[int, Field(ge=1, le=MOST_ITEMS)] | None = None
    units: Annotated[list[Unit], Field(min_length=1, max_length=MOST_ITEMS)] | None = None

    @model_validator(mode="after")
    def one_of_both(self) -> AskManyIn:
        """A number or a list."""
        if (self.count is None) == (self.units is None):
            raise ValueError("Give either `count` or `units`.")
        return self


class TellIn(Request):
    """What happened."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reward": 1}]})

    reward: Number


class RewardItemIn(Request):
    """One reward of many, by assignment or by unit."""

    assignment: Annotated[str, Field(max_length=255)] | None = None
    unit: Unit | None = None
    reward: Number

    @model_validator(mode="after")
    def one_of_both(self) -> RewardItemIn:
        """By assignment or by unit, not both."""
        if (self.assignment is None) == (self.unit is None):
            raise ValueError("Give either `assignment` or `unit`.")
        return self


class TellManyIn(Request):
    """Many rewards."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"rewards": [{"assignment": "asg_000000004d23f1c8e0a97b5d264", "reward": 1}, {"unit": "user-42", "reward": 0}]}
            ]
        }
    )

    # Items are validated one by one, because the good ones count whatever the others are.
    rewards: Annotated[list[SkipValidation[RewardItemIn]], Field(min_length=1, max_length=MOST_ITEMS)]


class ObservationIn(Request):
    """A reward without an ask."""

    arm: Annotated[str, Field(max_length=255)]
    reward: Number
    id: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class ObserveIn(Request):
    """Many observations."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"observations": [{"arm": "green", "reward": 1, "id": "import-77"}]}]}
    )

    observations: Annotated[list[SkipValidation[ObservationIn]], Field(min_length=1, max_length=MOST_ITEMS)]


class ArmOut(Answer):
    """An arm."""

    key: str
    name: str
    value: Any
    min_share: float
    status: Literal["active", "disabled"]


class ExperimentOut(Answer):
    """An experiment."""

    key: str
    name: str
    description: str
    status: ExperimentStatus
    arms: list[ArmOut]
    policy: dict[str, Any]
    reward: dict[str, Any]
    expiry: ExpiryIn | None
    sticky: bool
    confidence: float
    conclude_when: ConcludeWhenIn | None
    concluded_arm: str | None
    created_at: datetime
    version: int


class ExperimentPage(Answer):
    """A page of experiments, newest first."""

    experiments: list[ExperimentOut]
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

    id: str | None
    experiment: str
    arm: str
    value: Any
    unit: str | None
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


class StandingOut(Answer):
    """How one arm does."""

    arm: str
    name: str
    status: Literal["active", "disabled"]
    draws: int
    pending: int
    expired: int
    observations: int
    mean: float | None
    variance: float | None
    interval: tuple[float, float] | None
    share: float
    target_share: float


class RecommendationOut(Answer):
    """Which arm is best now, and how sure that is."""

    experiment: str
    status: ExperimentStatus
    arm: str | None
    value: Any
    draws: int
    observations: int
    pending: int
    runner_up: str | None
    gap: float | None
    summary: str
    separated: bool
    confidence: float
    method: str
    assumes: list[str]
    error_estimate: float | None
    drift: list[str]
    concluded_arm: str | None
    version: int
    as_of: datetime
    arms: list[StandingOut]


class CourseArmOut(Answer):
    """How one arm did."""

    arm: str
    draws: int
    observations: int
    mean: float | None
    interval: tuple[float, float] | None
    share: float
    target_share: float


class CoursePointOut(Answer):
    """One moment of the course."""

    version: int
    at: datetime
    arm: str | None = Field(description="The recommendation then.")
    draws: int
    observations: int
    error_estimate: float | None
    separated: bool
    arms: list[CourseArmOut]


class CourseOut(Answer):
    """The course of an experiment, oldest first."""

    experiment: str
    points: list[CoursePointOut]


class EventOut(Answer):
    """One entry of the audit log."""

    sequence: int
    kind: str
    at: datetime
    arm: str | None
    assignment: int | None = Field(description="Draw number of the assignment concerned.")
    details: dict[str, Any]


class EventPage(Answer):
    """A page of the audit log, newest first."""

    events: list[EventOut]
    next_page_token: str | None


class FieldProblem(Answer):
    """What is wrong with one field."""

    pointer: str
    detail: str


class Problem(Answer):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: list[FieldProblem] = []
