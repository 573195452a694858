"""Experiments and their arms, and what is known about them, as the service tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Self

from bestarm.assignment import Json, moment

Status = Literal["draft", "running", "paused", "concluded", "archived"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the variants."""

    key: str
    name: str
    value: Json
    min_share: float
    status: Literal["active", "disabled"]

    @classmethod
    def read(cls, written: Json) -> Self:
        """An arm as the service writes it; lists leave its value out."""
        return cls(written["key"], written["name"], written.get("value"), written["min_share"], written["status"])


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment. What has no attribute of its own is in `raw`, as the service wrote it."""

    key: str
    name: str
    status: Status
    arms: tuple[Arm, ...]
    sticky: bool
    concluded_arm: str | None
    version: int
    created_at: datetime | None
    raw: Mapping[str, Json] = field(repr=False)

    @classmethod
    def read(cls, written: Json) -> Self:
        """An experiment as the service writes it."""
        return cls(
            written["key"],
            written["name"],
            written["status"],
            tuple(Arm.read(arm) for arm in written["arms"]),
            written["sticky"],
            written["concluded_arm"],
            written["version"],
            moment(written["created_at"]),
            written,
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """How one arm does. What has no attribute of its own (lift, evidence, …) is in `raw`."""

    arm: str
    draws: int
    pending: int
    observations: int
    mean: float | None
    interval: tuple[float, float] | None
    share: float
    target_share: float
    raw: Mapping[str, Json] = field(repr=False)

    @classmethod
    def read(cls, written: Json) -> Self:
        """An arm's standing as the service writes it."""
        names = ("arm", "draws", "pending", "observations", "mean", "interval", "share", "target_share")
        given = {name: written[name] for name in names}
        return cls(**given | {"interval": given["interval"] and tuple(given["interval"]), "raw": written})


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which arm is best now, and how sure that is. What has no attribute of its own is in `raw`."""

    experiment: str
    status: Status
    arm: str | None
    value: Json
    summary: str
    verdict: Mapping[str, Json]
    separated: bool
    decided: bool
    draws: int
    observations: int
    pending: int
    concluded_arm: str | None
    version: int
    as_of: datetime | None
    arms: tuple[Standing, ...]
    raw: Mapping[str, Json] = field(repr=False)

    @classmethod
    def read(cls, written: Json) -> Self:
        """A recommendation as the service writes it."""
        names = (
            "experiment", "status", "arm", "value", "summary", "verdict", "separated", "decided",
            "draws", "observations", "pending", "concluded_arm", "version",
        )  # fmt: skip
        given = {name: written[name] for name in names}
        arms = tuple(Standing.read(arm) for arm in written["arms"])
        return cls(**given, as_of=moment(written["as_of"]), arms=arms, raw=written)
