"""What the service answers to an ask, and to a tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias

from bestarm.errors import Error

Json: TypeAlias = Any
"""Whatever JSON can say."""

AssignmentStatus = Literal["pending", "rewarded", "expired", "voided"]


def moment(written: str | None) -> datetime | None:
    """A time of an answer."""
    return None if written is None else datetime.fromisoformat(written)


def number(reward: float) -> float:
    """A reward as the service takes it: true is 1, another library's number is a number, and what is not finite is none."""
    if not math.isfinite(reward):
        raise ValueError(f"A reward is a finite number, not {reward}.")
    return float(reward)


def text(given: object, what: str) -> str:
    """A name as the service takes it. Whatever else a program has in its place is not made one: it may be a name by accident."""
    if not isinstance(given, str):
        raise TypeError(f"{what} is a text, not {given!r}.")
    return given


@dataclass(frozen=True, slots=True)
class Assignment:
    """The arm to show, and what became of it. `id` and `draw` are None where nothing was drawn: concluded, or a fallback."""

    id: str | None
    experiment: str
    arm: str
    value: Json
    unit: str | None = None
    draw: int | None = None
    reason: str = "fallback"
    status: AssignmentStatus | None = None
    reward: float | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    rewarded_at: datetime | None = None
    is_fallback: bool = False
    error: Error | None = None
    """Why it is the fallback."""

    @classmethod
    def read(cls, written: Json) -> Self:
        """An assignment as the service writes it; whatever a later release adds is left out."""
        if not isinstance(written["arm"], str) or not isinstance(written["id"], str | None):
            raise TypeError("An assignment has an arm.")
        return cls(
            written["id"],
            written["experiment"],
            written["arm"],
            written["value"],
            written["unit"],
            written["draw"],
            written["reason"],
            written["status"],
            written["reward"],
            moment(written["created_at"]),
            moment(written["expires_at"]),
            moment(written["rewarded_at"]),
        )


@dataclass(frozen=True, slots=True)
class Reward:
    """One item of `rewards`: a number for an assignment, or for the current assignment of a unit (sticky experiments)."""

    reward: float
    assignment: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        if (self.assignment is None) == (self.unit is None):
            raise ValueError("A reward is for an assignment or for a unit.")
        text(self.assignment if self.unit is None else self.unit, "What a reward is for")

    def written(self) -> dict[str, Json]:
        """The item as the service reads it."""
        named = {"assignment": self.assignment} if self.unit is None else {"unit": self.unit}
        return {**named, "reward": number(self.reward)}


@dataclass(frozen=True, slots=True)
class Observation:
    """One item of `observe`: a reward of an arm that the caller chose itself. With an `id` it counts once."""

    arm: str
    reward: float
    id: str | None = None

    def written(self) -> dict[str, Json]:
        """The item as the service reads it."""
        item: dict[str, Json] = {"arm": self.arm, "reward": number(self.reward)}
        return item if self.id is None else item | {"id": self.id}


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one item: `recorded`, `duplicate` (it was there already), or why not."""

    status: Literal["recorded", "duplicate", "conflict", "not_found", "invalid"]
    detail: str | None = None

    @property
    def counts(self) -> bool:
        """Whether the service has it, from now or from before."""
        return self.status in {"recorded", "duplicate"}

    @classmethod
    def read(cls, written: Json) -> Self:
        """A result as the service writes it."""
        return cls(written["status"], written.get("detail"))
