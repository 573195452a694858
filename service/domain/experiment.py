"""What an experiment is: its arms, its policy, its rewards, its life. All frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from service.domain.limits import LARGEST_REWARD

ExperimentStatus: TypeAlias = Literal["draft", "running", "paused", "concluded", "archived"]
ArmStatus: TypeAlias = Literal["active", "disabled"]
RewardKind: TypeAlias = Literal["binary", "bounded", "real"]
Goal: TypeAlias = Literal["maximize", "minimize"]
PolicyKind: TypeAlias = Literal["simple_tracking", "almost_tracking", "uniform"]
Ties: TypeAlias = Literal["limit", "paper"]
Move: TypeAlias = Literal["start", "pause", "resume", "conclude", "reopen", "archive"]
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# draft -> running <-> paused <-> concluded -> archived; running -> concluded
MOVES: dict[Move, tuple[tuple[ExperimentStatus, ...], ExperimentStatus]] = {
    "start": (("draft",), "running"),
    "pause": (("running",), "paused"),
    "resume": (("paused",), "running"),
    "conclude": (("running", "paused"), "concluded"),
    "reopen": (("concluded",), "paused"),
    "archive": (("concluded",), "archived"),
}
TAKES_REWARDS: frozenset[ExperimentStatus] = frozenset({"running", "paused", "concluded"})


class ExperimentVersion(NamedTuple):
    """Which experiment, and the number of its last event: a key may come to name another one, an id never does."""

    experiment: int
    number: int


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """Which policy, with its parameters.

    The defaults of the last three are what experiments had before there was a choice: settings and events that were stored then
    lack them, and must go on meaning the draws that they led to.
    """

    kind: PolicyKind = "simple_tracking"
    seed: int = 0
    sharpness: float = 1.0
    batch_size: int | None = None
    sufficiency: float = 0.999
    sufficiency_by: Literal["planned", "realised"] = "planned"
    guard: float = 0.0
    """The part of the paper's weights in the mixture with the sharper ones."""
    ties: Ties = "paper"
    """What tied best arms weigh: the limit of the formula, or what the paper writes."""
    keeps_floors: bool = False
    """Is an arm that is a whole draw behind its floor drawn before anything else? True for every new experiment."""


@dataclass(frozen=True, slots=True)
class RewardSpec:
    """What a reward may be and which direction is better."""

    kind: RewardKind = "binary"
    goal: Goal = "maximize"
    minimum: float | None = None
    maximum: float | None = None

    @property
    def sign(self) -> int:
        """+1 where larger is better, -1 where smaller is."""
        return 1 if self.goal == "maximize" else -1

    def objection_to(self, reward: float) -> str | None:
        """Why this reward is not allowed, or None."""
        if self.kind == "binary":
            return None if reward in (0, 1) else "A binary reward is 0 or 1."
        if self.kind == "bounded" and self.minimum is not None and self.maximum is not None:
            allowed = self.minimum <= reward <= self.maximum
            return None if allowed else f"The reward must lie between {self.minimum:g} and {self.maximum:g}."
        return None if abs(reward) <= LARGEST_REWARD else f"The reward must be at most {LARGEST_REWARD:g} in magnitude."


@dataclass(frozen=True, slots=True)
class Expiry:
    """What silence means: after the window a draw becomes this reward, or (None) leaves the draws."""

    after_seconds: float
    reward: float | None

    def window_end(self, drawn_at: int) -> int:
        """When the window of a draw closes; times are microseconds."""
        return drawn_at + round(self.after_seconds * 1_000_000)


@dataclass(frozen=True, slots=True)
class ConcludeWhen:
    """When the experiment concludes by itself: once it is separated, decided or beats the control, and so many rewards are in."""

    separated: bool
    min_observations: int
    decided: bool = False
    beats_control: bool = False


@dataclass(frozen=True, slots=True)
class Arm:
    """One variant: what it is, not how it does."""

    position: int
    key: str
    name: str
    value: Json
    min_share: float = 0.0
    status: ArmStatus = "active"
    added: int = 0
    """0 for the arms the experiment began with, m for the m-th added later."""

    @property
    def active(self) -> bool:
        """May it be drawn and recommended?"""
        return self.status == "active"


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment's settings and status; its arms and their statistics are kept beside it."""

    id: int
    key: str
    name: str
    description: str
    policy: PolicySpec
    reward: RewardSpec
    expiry: Expiry | None
    sticky: bool
    confidence: float
    conclude_when: ConcludeWhen | None
    status: ExperimentStatus
    concluded_arm: int | None
    """Position of the arm that a concluded experiment serves."""
    created_at: int
    """Times are microseconds since 1970, UTC."""
    tags: tuple[str, ...] = ()
    owner: str | None = None
    last_move: Move | None = None
    """What led to the status; None while it is the one it was created with, or if moves were not kept yet."""
    worthwhile: float | None = None
    """The smallest difference of means that matters."""
    control: int | None = None
    """Position of the arm that is live today."""
    ofrep_bulk: bool = False
    """Does a page that evaluates all its flags at once draw here, too?"""
    pruned_at: int | None = None
    """When its single draws, rewards and observations were given up. What was counted of them stays, and can change no more."""
