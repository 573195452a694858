"""The targets of a few arms while one mean after the other moves: only what a single move changes is computed again.

Under a numeric expiry a draw counts as the reward of silence until another one is told, so every draw moves the mean of its arm.
With gaps d_i to the best mean, the H1 weights (service/policy/weights.py) rest on

    D_i = sum_{j != i} (d_i / (d_i + d_j))^2,

and when arm m that is not the best goes from gap a to gap b, every other D_i changes by one summand:

    (d_i / (d_i + b))^2 - (d_i / (d_i + a))^2.

Where the best mean moves, all gaps do, and all is summed anew: K^2 pairs, which for a few arms are cheap in plain floats, too.

Error: every D_i is at least 1, because its summand against the best arm is 1, and at most K. Each of at most _MOST_STEPS moves
rounds four numbers below K, so a D_i is off by less than 64 * 4 * 32 * 2^-53 < 1e-12 of itself and the targets by less than
1e-11, the bound that the choice allows for (tests/policy/test_moving.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from service.policy.weights import PAIR_WITH_ITSELF, mixed_targets

if TYPE_CHECKING:
    from service.policy.base import Evidence
    from service.policy.weights import WeightRule

_MOST_STEPS = 64
# Gaps beyond this could overflow in a sum of two.
_LARGEST_GAP = 2.0**1010


class MovingTargets:
    """Means, gaps and costs D as lists, brought along move by move."""

    __slots__ = ("_best", "_costs", "_floors", "_gaps", "_means", "_promised", "_rule", "_steps")

    def __init__(self, means: list[float], floors: list[float], rule: WeightRule) -> None:
        self._means, self._floors, self._rule = means, floors, rule
        self._promised = math.fsum(floors)
        self._best = 0.0
        self._gaps: list[float] = []
        self._costs: list[float] = []
        self._sum_up()

    @classmethod
    def over(cls, evidence: Evidence, rule: WeightRule) -> MovingTargets | None:
        """Of this evidence, if every arm has a mean and the gaps are within reach."""
        means: list[float] = evidence.means.tolist()
        if any(mean != mean for mean in means) or not max(means) - min(means) < _LARGEST_GAP:  # noqa: PLR0124 - NaN
            return None
        return cls(means, evidence.floors.tolist(), rule)

    def move(self, index: int, mean: float) -> bool:
        """The mean of one arm is another one now. False if that is out of reach."""
        before, after = self._gaps[index], self._best - mean
        if abs(after) >= _LARGEST_GAP:
            return False
        self._means[index] = mean
        self._steps += 1
        if not (before > 0.0 and after > 0.0) or self._steps > _MOST_STEPS:
            self._sum_up()
            return True
        gaps = self._gaps
        gaps[index] = after
        # The cost of a best arm is infinite and stays so: its gap is 0, and so are both summands.
        self._costs = costs = [
            cost + (new := gap / (gap + after)) * new - (old := gap / (gap + before)) * old
            for gap, cost in zip(gaps, self._costs, strict=True)
        ]
        costs[index] = _cost(after, gaps)
        return True

    def _sum_up(self) -> None:
        """All gaps and costs from the means."""
        self._best = best = max(self._means)
        self._gaps = gaps = [best - mean for mean in self._means]
        self._costs = [_cost(gap, gaps) if gap > 0.0 else math.inf for gap in gaps]
        self._steps = 0

    def targets(self) -> list[float]:
        """The weights with the floors mixed in."""
        cheapest = min(self._costs)
        if cheapest == math.inf:  # all arms are tied
            weights = [1.0 / len(self._costs)] * len(self._costs)
        else:
            # The best arms' own cost is infinite: the rule says what they take.
            best = 1.0 / self._rule.cost_of_best(self._costs.count(math.inf), cheapest)
            weights = _mixed([1.0 / cost or best for cost in self._costs], self._rule)
        if not self._promised:
            return weights
        rest = max(0.0, 1.0 - self._promised)
        return [floor + rest * weight for floor, weight in zip(self._floors, weights, strict=True)]

    def direct(self) -> list[float]:
        """The same by the direct formula."""
        targets = mixed_targets(np.array(self._means), np.array(self._floors), self._rule)
        return cast("list[float]", targets.tolist())


def _cost(own: float, gaps: list[float]) -> float:
    """D of an arm with this gap, which is one of the gaps."""
    return sum([(ratio := own / (own + gap)) * ratio for gap in gaps]) - PAIR_WITH_ITSELF


def _mixed(inverse: list[float], rule: WeightRule) -> list[float]:
    """The weights of these 1/D."""
    if not rule.mixes:
        return _normalised(inverse)
    sharp = _normalised([one**rule.sharpness for one in inverse])
    if rule.guard == 0.0:
        return sharp
    plain = _normalised(inverse)
    return [rule.guard * one + (1.0 - rule.guard) * other for one, other in zip(plain, sharp, strict=True)]


def _normalised(values: list[float]) -> list[float]:
    total = sum(values)
    return [one / total for one in values]
