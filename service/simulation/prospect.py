"""An experiment as it is supposed to be, before it runs: what `bestarm plan` and the form for new experiments play.

What is known beforehand is little: how many arms, the baseline, the smallest lift worth finding, perhaps all means. With a lift
alone the plan takes the hard case: one arm has it, all others are equal to the baseline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from service.domain.limits import FEWEST_ARMS, LARGEST_REWARD, MOST_PLANNED_ARMS
from service.errors import InvalidValue

if TYPE_CHECKING:
    from service.domain import PolicySpec, RewardSpec

# Rewards that are later than this are those of another experiment.
LONGEST_WAIT = 100_000_000
_FLOOR_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """Arms, how their rewards fall and come, and what the verdict is judged by."""

    reward: RewardSpec
    policy: PolicySpec
    means: tuple[float, ...]
    deviation: float = 0.0
    """Of an arm's rewards; binary ones have their own."""
    floors: tuple[float, ...]
    confidence: float = 0.95
    worthwhile: float | None = None
    delay: int = 0
    """Draws decided before a reward is known."""
    window: int | None = None
    """Draws before a reward counts in the verdict, under a numeric expiry."""
    silence: float | None = None
    """The reward that a draw counts as until it is told, under a numeric expiry."""
    loss: float = 0.0
    """The part of the rewards that never come."""

    def __post_init__(self) -> None:
        if not FEWEST_ARMS <= len(self.means) <= MOST_PLANNED_ARMS:
            raise InvalidValue("/arms", f"A plan is made for {FEWEST_ARMS} to {MOST_PLANNED_ARMS} arms, not {len(self.means)}.")
        self._check_means()
        self._check_floors()
        if not 0.0 < self.confidence < 1.0:
            raise InvalidValue("/confidence", "The confidence lies between 0 and 1.")
        if not 0.0 <= self.loss < 1.0:
            raise InvalidValue("/loss", "The loss is a part of the rewards, below 1.")
        objection = None if self.silence is None else self.reward.objection_to(self.silence)
        if objection is not None:
            raise InvalidValue("/expiry/reward", objection)
        if self.loss and self.silence is not None:
            raise InvalidValue("/loss", "Under a numeric expiry what never comes counts: it is part of the means, and not lost.")
        for pointer, wait in (("/delay", self.delay), ("/expiry", self.window or 0)):
            if not 0 <= wait <= LONGEST_WAIT:
                raise InvalidValue(pointer, f"Rewards may be late by {LONGEST_WAIT:,} draws at most.")
        if self.worthwhile is None and not self.has_best:
            raise InvalidValue("/means", "No arm is better than all others, so nothing can be shown: say what is worthwhile.")

    def _check_means(self) -> None:
        reward = self.reward
        low, high = self.bounds
        if not all(low <= mean <= high for mean in self.means):
            inside = "of at most 1e100 in magnitude" if reward.kind == "real" else f"from {low:g} to {high:g}"
            raise InvalidValue("/baseline", f"Means of {reward.kind} rewards are numbers {inside}, with the lift too.")
        if reward.kind != "binary":
            if not (math.isfinite(self.deviation) and 0.0 < self.deviation <= LARGEST_REWARD):
                raise InvalidValue("/deviation", f"Say how much {reward.kind} rewards vary: their standard deviation, above 0.")
            most = min(math.sqrt((mean - low) * (high - mean)) for mean in self.means) if reward.kind == "bounded" else math.inf
            if self.deviation > most:
                raise InvalidValue("/deviation", f"Rewards from {low:g} to {high:g} with these means vary by {most:g} at most.")
        if self.worthwhile is not None and not 0.0 < self.worthwhile < high - low:
            raise InvalidValue(
                "/worthwhile", f"What is worthwhile is above 0 and below {high - low:g}, the range of the rewards."
            )

    def _check_floors(self) -> None:
        if len(self.floors) != len(self.means):
            raise InvalidValue("/min_share", f"There are {len(self.floors)} floors for {len(self.means)} arms.")
        if not all(0.0 <= floor <= 1.0 for floor in self.floors) or sum(self.floors) > 1.0 + _FLOOR_SLACK:
            raise InvalidValue("/min_share", "Floors are parts of the traffic, from 0 to 1, and sum to at most 1.")

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest mean that such rewards can have."""
        if self.reward.kind == "binary":
            return 0.0, 1.0
        if self.reward.kind == "real":
            return -LARGEST_REWARD, LARGEST_REWARD
        return float(self.reward.minimum or 0.0), float(self.reward.maximum or 0.0)

    @property
    def best(self) -> int:
        """The position of the best arm."""
        return int(np.argmax(self.reward.sign * np.array(self.means)))

    @property
    def has_best(self) -> bool:
        """Is one arm better than all others?"""
        return self.means.count(self.means[self.best]) == 1

    def among_equals(self) -> Prospect:
        """The same with all arms like the worst one."""
        worst = int(np.argmin(self.reward.sign * np.array(self.means)))
        return replace(self, means=(self.means[worst],) * len(self.means))


def lifted_means(
    reward: RewardSpec, arms: int, baseline: float | None, lift: float | None, best: int | None = None
) -> tuple[float, ...]:
    """One arm, the last one unless said otherwise, is better than the baseline by the lift; all others are at the baseline."""
    if baseline is None:
        raise InvalidValue("/baseline", "Give the baseline: the mean of the arms that are not better (a rate of 10% is 0.10).")
    if lift is None or not lift > 0.0:
        raise InvalidValue(
            "/lift", "Give the lift: the smallest improvement worth finding, above 0 (two points of a rate are 0.02)."
        )
    if not FEWEST_ARMS <= arms <= MOST_PLANNED_ARMS:
        raise InvalidValue("/arms", f"A plan is made for {FEWEST_ARMS} to {MOST_PLANNED_ARMS} arms, not {arms}.")
    place = arms - 1 if best is None else best
    if not 0 <= place < arms:
        raise InvalidValue("/best", "The arm that is supposed to be better is one of the arms.")
    return tuple(baseline + reward.sign * lift if arm == place else baseline for arm in range(arms))
