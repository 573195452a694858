"""Draw after draw for a few arms: what a burst of asks is answered from.

While no mean moves, the targets stay and every draw moves one count. For a few arms numpy's calls cost more than the arithmetic,
so a run keeps plain lists; its floats are numpy's to the bit, and so are its choices (tests/policy/test_run.py). Under a numeric
expiry every draw moves the mean of the arm it drew: then a run follows with targets that move along (service/policy/moving.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from service.policy.base import SCORE_TIE, Choice, first_undrawn
from service.policy.moving import MovingTargets

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.policy.base import Evidence, Reason, Targets
    from service.policy.weights import WeightRule

# Up to this many arms lists are faster than arrays (benchmarks/decision_cost.py).
FEW = 32
# Where a score lies so close to the edge of a tie, the last digits of moving targets could decide: then the direct formula does.
_DOUBT = 0.1 * SCORE_TIE


class Run:
    """The choices that follow one another until the evidence changes in any other way than by these draws."""

    __slots__ = ("_choices", "_draws", "_floors", "_make_moving", "_moving", "_targets", "_total")

    def __init__(
        self,
        targets: list[float],
        draws: list[int],
        reason: Reason,
        make_moving: Callable[[], MovingTargets | None] | None = None,
    ) -> None:
        """`make_moving` is given where the targets depend on the means."""
        self._targets, self._draws, self._total = targets, draws, sum(draws)
        self._choices = [Choice(index, reason) for index in range(len(draws))]
        self._make_moving = make_moving
        self._moving: MovingTargets | None = None
        self._floors: list[float] | None = None

    def keeping(self, floors: list[float]) -> Run:
        """The same run, which draws first what is owed by these floors (service/policy/floor_keeper.py)."""
        self._floors = floors
        return self

    def next(self) -> Choice:
        """The arm furthest below its target, ties to the lowest position; it counts as drawn."""
        if self._floors is not None:
            owed = self._most_owed(self._floors)
            if owed is not None:
                self._draws[owed] += 1
                self._total += 1
                return Choice(owed, "track")
        total = self._total or 1  # before the first draw all counts are 0
        scores = [target - count / total for target, count in zip(self._targets, self._draws, strict=True)]
        moving = self._moving
        index = _lowest(scores, max(scores) - SCORE_TIE) if moving is None else self._lowest_tied(scores, total, moving)
        self._draws[index] += 1
        self._total += 1
        return self._choices[index]

    def several(self, count: int) -> list[Choice]:
        """The next choices, one after the other."""
        return [self.next() for _ in range(count)]

    def _lowest_tied(self, scores: list[float], total: int, moving: MovingTargets) -> int:
        """The lowest arm that is tied by targets that have moved; at the edge of a tie by the direct formula."""
        least = max(scores) - SCORE_TIE
        index = _lowest(scores, least - _DOUBT)
        if scores[index] > least + _DOUBT:
            return index
        self._targets = moving.direct()
        direct = [target - count / total for target, count in zip(self._targets, self._draws, strict=True)]
        return _lowest(direct, max(direct) - SCORE_TIE)

    def _most_owed(self, floors: list[float]) -> int | None:
        following = self._total + 1.0
        debts = [floor * following - count for floor, count in zip(floors, self._draws, strict=True)]
        largest = max(debts)
        return debts.index(largest) if largest >= 1.0 else None

    def moved(self, index: int, mean: float) -> bool:
        """The mean of the arm that was just drawn is another one now. False if the run cannot go on from there."""
        if self._make_moving is None:
            return True
        if self._moving is None:
            self._moving = self._make_moving()
        if self._moving is None or not self._moving.move(index, mean):
            return False
        self._targets = self._moving.targets()
        return True


def _lowest(scores: list[float], least: float) -> int:
    """The lowest position with such a score."""
    index = 0
    while scores[index] < least:
        index += 1
    return index


def run_of(evidence: Evidence, targets: Targets, reason: Reason, rule: WeightRule | None = None) -> Run | None:
    """A run, if the arms are few and each was drawn before. `rule` is given where the targets follow the means."""
    if len(evidence.draws) > FEW or first_undrawn(evidence) is not None:
        return None

    make_moving = None if rule is None else partial(MovingTargets.over, evidence, rule)
    return Run(targets().tolist(), evidence.draws.tolist(), reason, make_moving)
