"""Draw after draw from the same targets, for a few arms: what a burst of asks is answered from.

While no mean moves, the targets stay and every draw moves one count. For a few arms numpy's calls cost more than the arithmetic,
so a run keeps plain lists; its floats are numpy's to the bit, and so are its choices (tests/policy/test_run.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.policy.base import SCORE_TIE, Choice, first_undrawn

if TYPE_CHECKING:
    from service.policy.base import Evidence, Reason, Targets

# Up to this many arms lists are faster than arrays (benchmarks/decision_cost.py).
FEW = 32


class Run:
    """The choices that follow one another until the evidence changes in any other way than by these draws."""

    __slots__ = ("_choices", "_draws", "_targets", "_total")

    def __init__(self, targets: list[float], draws: list[int], reason: Reason) -> None:
        self._targets, self._draws, self._total = targets, draws, sum(draws)
        self._choices = [Choice(index, reason) for index in range(len(draws))]

    def next(self) -> Choice:
        """The arm furthest below its target, ties to the lowest position; it counts as drawn."""
        total = self._total or 1  # before the first draw all counts are 0
        scores = [target - count / total for target, count in zip(self._targets, self._draws, strict=True)]
        least = max(scores) - SCORE_TIE
        index = 0
        while scores[index] < least:
            index += 1
        self._draws[index] += 1
        self._total += 1
        return self._choices[index]


def run_of(evidence: Evidence, targets: Targets, reason: Reason) -> Run | None:
    """A run, if the arms are few and each was drawn before."""
    if len(evidence.draws) > FEW or first_undrawn(evidence) is not None:
        return None
    return Run(targets().tolist(), evidence.draws.tolist(), reason)
