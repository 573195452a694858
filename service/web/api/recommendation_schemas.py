"""What goes out over HTTP about how sure it is: the recommendation, its verdict, the forecast and the course."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from service.domain import ExperimentStatus
from service.web.api.answer_schemas import Answer
from service.web.api.request_schemas import Key, Name


class LiftOut(Answer):
    """An arm against the control, anytime-valid at the experiment's confidence."""

    difference: float = Field(description="The arm's mean less the control's.")
    difference_interval: tuple[float, float] | None
    ratio: float | None
    ratio_interval: tuple[float, float] | None


class VerdictOut(Answer):
    """May it stop?"""

    state: Literal["collecting", "leading", "decided", "concluded"]
    reason: Literal["separated", "nothing_worthwhile", "beats_control"] | None
    arm: Key | None = Field(description="The arm to take once it is decided, or that is served once it is concluded.")
    progress: float = Field(description="The evidence of the pair that holds separation up, as a part of what it takes.")
    held_up_by: Key | None = Field(description="The rival of that pair.")
    since: datetime | None


class StandingOut(Answer):
    """How one arm does."""

    arm: Key
    name: Name
    status: Literal["active", "disabled"]
    draws: int
    pending: int
    expired: int
    observations: int
    mean: float | None
    variance: float | None
    interval: tuple[float, float] | None
    evidence: float | None
    harmful: bool
    lift: LiftOut | None
    share: float
    target_share: float


class RecommendationOut(Answer):
    """Which arm is best now, and how sure that is."""

    experiment: Key
    status: ExperimentStatus
    arm: Key | None
    value: Any
    draws: int
    observations: int
    pending: int
    imported: int = Field(description="Of the observations, those that were told without an ask.")
    runner_up: Key | None
    gap: float | None
    summary: str
    verdict: VerdictOut
    separated: bool
    separated_at: datetime | None
    decided: bool
    confidence: float
    method: str
    assumes: list[str]
    error_estimate: float | None
    drift: list[Key]
    concluded_arm: Key | None
    version: int
    as_of: datetime
    arms: list[StandingOut]


class ForecastDraws(Answer):
    """Further draws until the verdict: the middle of what may happen, and the range that 80% of it lies in."""

    median: int | None
    low: int | None
    high: int | None


class ForecastTimes(Answer):
    """The same as times, at the present rate."""

    median: datetime | None
    low: datetime | None
    high: datetime | None


class ForecastWithin(Answer):
    """How likely the verdict is there within some days."""

    days: float
    probability: float | None = Field(
        description="Null while there is no traffic to tell days by, or the experiment is not running."
    )


class WaitingOut(Answer):
    """What waiting for the verdict goes on to cost."""

    share: float = Field(description="The part of new traffic that goes to arms that are shown to be worse than another one.")
    reward_per_day: float | None = Field(
        description="What that traffic earns less a day than with the best mean; null without a rate."
    )


class ForecastOut(Answer):
    """When the verdict will be there."""

    draws: ForecastDraws
    at: ForecastTimes | None
    rate_per_day: float | None
    shortfall_now: float
    never: bool
    within: ForecastWithin | None = Field(description="Null unless `within_days` was given.")
    waiting: WaitingOut | None = Field(description="Null unless the experiment is running.")
    version: int


class CourseArmOut(Answer):
    """How one arm did."""

    arm: Key
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
    arm: Key | None = Field(description="The recommendation then.")
    draws: int
    observations: int
    error_estimate: float | None
    separated: bool
    arms: list[CourseArmOut]


class CourseOut(Answer):
    """The course of an experiment, oldest first."""

    experiment: Key
    separated_at: datetime | None = Field(
        description="When the separation that holds now was found; points are separated from then on."
    )
    points: list[CoursePointOut]
