"""What comes in over HTTP. Requests are strict: unknown fields, booleans for numbers and numbers as text are refused."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, SkipValidation, model_validator

from service.domain.limits import (
    FEWEST_ARMS,
    KEY_PATTERN,
    LARGEST_BATCH_SIZE,
    LARGEST_REWARD,
    LARGEST_SEED,
    LARGEST_SHARPNESS,
    LONGEST_DESCRIPTION,
    LONGEST_EXPIRY_SECONDS,
    LONGEST_NAME,
    LONGEST_OBSERVATION_ID,
    LONGEST_OWNER,
    LONGEST_UNIT,
    MOST_ARMS,
    MOST_ITEMS,
    MOST_MIN_OBSERVATIONS,
    MOST_TAGS,
    MOST_VALUE_BYTES,
)

Key = Annotated[str, Field(pattern=f"^{KEY_PATTERN}$", examples=["checkout-button"])]
Unit = Annotated[str, Field(min_length=1, max_length=LONGEST_UNIT, examples=["user-42"])]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST_REWARD, le=LARGEST_REWARD)]
Name = Annotated[str, Field(max_length=LONGEST_NAME)]
Owner = Annotated[str, Field(max_length=LONGEST_OWNER, examples=["growth@shop.example"])]
Description = Annotated[str, Field(max_length=LONGEST_DESCRIPTION)]


def _small(value: JsonValue) -> JsonValue:
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > MOST_VALUE_BYTES:
        raise ValueError("A value may take at most 16 KiB as JSON.")
    return value


Value = Annotated[JsonValue, AfterValidator(_small)]


def _different(tags: list[str]) -> list[str]:
    for tag in tags:
        if tags.count(tag) > 1:
            raise ValueError(f"The tag {tag!r} is given twice.")
    return tags


Tags = Annotated[list[Key], Field(max_length=MOST_TAGS), AfterValidator(_different)]


class Request(BaseModel):
    """A body: strict and closed."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _no_crowd(cls, given: object) -> object:
        """A typo is named; a crowd of unknown fields is refused as one, or the answer would be far larger than the request."""
        if isinstance(given, dict) and len(given) > 2 * len(cls.model_fields):
            raise ValueError(f"There are {len(given):,} fields here, and no more than {len(cls.model_fields)} are known.")
        return given


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
    """Which policy, with its parameters; `auto` becomes what is recommended for the reward kind and the number of arms."""

    kind: Literal["auto", "simple_tracking", "almost_tracking", "uniform"] = "auto"
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)] | None = None
    sharpness: Annotated[float, Field(ge=1, le=LARGEST_SHARPNESS, allow_inf_nan=False)] = 1.0
    guard: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    ties: Literal["limit", "paper"] = "limit"
    batch_size: Annotated[int, Field(ge=2, le=LARGEST_BATCH_SIZE)] | None = None
    sufficiency: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.999
    sufficiency_by: Literal["planned", "realised"] = "planned"

    @model_validator(mode="after")
    def parameters_belong_to_the_kind(self) -> PolicyIn:
        """A parameter that the policy does not have would be a silent mistake."""
        of_batches, of_weights = {"batch_size", "sufficiency", "sufficiency_by"}, {"sharpness", "guard", "ties"}
        foreign = {"simple_tracking": of_batches, "uniform": of_batches | of_weights, "auto": of_batches | of_weights}
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

    after_seconds: Annotated[float, Field(gt=0, le=LONGEST_EXPIRY_SECONDS, allow_inf_nan=False)]
    reward: Number | None = None


class ConcludeWhenIn(Request):
    """When the experiment concludes by itself: once it is `separated` (meant if none is said), `decided` or `beats_control`."""

    separated: Literal[True] | None = None
    decided: Literal[True] | None = None
    beats_control: Literal[True] | None = None
    min_observations: Annotated[int, Field(ge=0, le=MOST_MIN_OBSERVATIONS)] = 0

    @model_validator(mode="after")
    def one_rule(self) -> ConcludeWhenIn:
        """Two would leave open which of them is waited for."""
        if sum(1 for rule in (self.separated, self.decided, self.beats_control) if rule) > 1:
            raise ValueError("Say one of `separated`, `decided` and `beats_control`.")
        return self


Worthwhile = Annotated[float, Field(gt=0, le=LARGEST_REWARD, allow_inf_nan=False)]


class OfrepIn(Request):
    """How OpenFeature's providers get at the experiment."""

    bulk: bool = Field(default=False, description="Evaluate it with all flags of a page, which is a draw for every visitor.")


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
    arms: Annotated[list[ArmIn], Field(min_length=FEWEST_ARMS, max_length=MOST_ARMS, fail_fast=True)]
    policy: PolicyIn = PolicyIn()
    reward: RewardIn = RewardIn()
    expiry: ExpiryIn | None = None
    sticky: bool = False
    confidence: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.95
    conclude_when: ConcludeWhenIn | None = None
    tags: Tags = []
    owner: Owner | None = None
    worthwhile: Worthwhile | None = None
    control: Key | None = None
    ofrep: OfrepIn = OfrepIn()
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
    tags: Tags = []
    owner: Owner | None = None
    worthwhile: Worthwhile | None = None
    control: Key | None = None
    ofrep: OfrepIn = OfrepIn()
    sticky: bool = False
    policy: PolicyIn = PolicyIn()
    reward: RewardIn = RewardIn()


class DuplicateIn(Request):
    """What the duplicate is called."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"key": "checkout-button-2"}]})

    key: Key


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
    units: Annotated[list[Unit], Field(min_length=1, max_length=MOST_ITEMS, fail_fast=True)] | None = None

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

    assignment: Annotated[str, Field(max_length=LONGEST_UNIT)] | None = None
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

    arm: Annotated[str, Field(max_length=LONGEST_NAME)]
    reward: Number
    id: Annotated[str, Field(min_length=1, max_length=LONGEST_OBSERVATION_ID)] | None = None


class ObserveIn(Request):
    """Many observations."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"observations": [{"arm": "green", "reward": 1, "id": "import-77"}]}]}
    )

    observations: Annotated[list[SkipValidation[ObservationIn]], Field(min_length=1, max_length=MOST_ITEMS)]
