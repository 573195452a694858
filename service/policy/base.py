"""What every policy shares: the evidence it reads, the choice it returns, and how ties are broken.

A policy is a frozen holder of parameters. It sees active arms only, in position order, and mutates nothing: what it must
remember between two choices (the running batch of Almost Tracking, the sums behind the targets) is a value that is passed in
and returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from service.policy.memory import TargetMemory  # both need the array types of this module
    from service.policy.plan import Plan
    from service.policy.run import Run

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Reason: TypeAlias = Literal["warmup", "track", "batch", "uniform"]

# Two correct ways to add floats differ in the last digits, so scores this close count as equal (docs/policies.md).
SCORE_TIE = 1e-9
# Up to this many arms the direct formula is the fastest, and the only one in use (benchmarks/decision_cost.py).
DIRECT_UP_TO = 256
# Faster targets of more arms lie within this part of the direct ones (docs/decisions/0005-fast-weights.md has the proof).
FAST_TARGET_ERROR = 2.5e-11
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is known of the active arms, one entry an arm, in position order."""

    means: Floats
    """Empirical means, oriented so that larger is better; NaN for an arm without any reward."""
    draws: Ints
    """Draws of the current epoch, pending ones included."""
    undrawn: Bools
    """True for an arm without any draw in any epoch."""
    floors: Floats
    """The least share of traffic promised to each arm."""

    def draw_shares(self) -> Floats:
        """Each arm's part of this epoch's draws; zeros before the first."""
        total = np.add.reduce(self.draws)  # a ufunc's reduce costs half of the method for a few arms
        return self.draws / total if total else np.zeros(len(self.draws))


class Choice(msgspec.Struct, frozen=True, gc=False):
    """The arm to draw, as its place among the active arms, and why."""

    index: int
    reason: Reason


# The targets are costly for many arms and not always needed: the caller keeps them and hands over the way to get them.
Targets: TypeAlias = Callable[[], Floats]


class Policy(Protocol):
    """What the live service and the simulator call."""

    def targets(self, evidence: Evidence) -> Floats:
        """The share of traffic that each arm should have, floors included; sums to one. By the direct formula."""
        ...

    def fast_targets(self, evidence: Evidence, memory: TargetMemory | None) -> tuple[Floats, TargetMemory | None]:
        """The targets within FAST_TARGET_ERROR of the direct ones, and the memory to pass in next time.

        Any memory is good for any evidence: it saves work where few means moved since, and is put aside where many did.
        """
        ...

    def choose(self, evidence: Evidence, targets: Targets, plan: Plan | None) -> tuple[Choice, Plan | None]:
        """The next arm, and the plan to pass in next time (None where the policy has none)."""
        ...

    def run(self, evidence: Evidence, targets: Targets) -> Run | None:
        """The same choices one after the other, as long as nothing but these draws happens; None where that is no faster."""
        ...


def lowest_near_largest(scores: Floats) -> int:
    """The lowest index whose score lies within SCORE_TIE of the largest."""
    return int((scores >= np.maximum.reduce(scores) - SCORE_TIE).argmax())


def first_undrawn(evidence: Evidence) -> int | None:
    """The lowest arm that was never drawn, if any."""
    index = int(evidence.undrawn.argmax())
    return index if evidence.undrawn[index] else None


def mix_floors(targets: Floats, floors: Floats) -> Floats:
    """W' = f + (1 - sum f) * w: every arm keeps its floor, the rest follows the targets."""
    promised = float(floors.sum())
    if promised == 0.0:
        return targets
    return floors + max(0.0, 1.0 - promised) * targets


def track(evidence: Evidence, targets: Targets, direct: Targets) -> int:
    """The arm furthest below its target: argmax of target - draws/t, ties to the lowest position.

    Above DIRECT_UP_TO arms the targets may be faster ones. Where their error could make or break a tie, the direct ones
    decide, so every way to the targets leads to the same arm.
    """
    shares = evidence.draw_shares()
    fast = targets()
    scores = fast - shares
    if len(scores) > DIRECT_UP_TO and _tie_in_doubt(scores, fast):
        scores = direct() - shares
    return lowest_near_largest(scores)


def _tie_in_doubt(scores: Floats, targets: Floats) -> bool:
    """True if a score is so close to SCORE_TIE below the largest that the error of the targets may matter."""
    largest = float(scores.max())
    near = np.flatnonzero(scores >= largest - 2 * SCORE_TIE)
    # The largest score may be off as well as the other one.
    doubt = 2 * FAST_TARGET_ERROR * float(targets[near].max()) + _ROUNDING * (abs(largest) + SCORE_TIE)
    return bool((np.abs(largest - scores[near] - SCORE_TIE) <= doubt).any())
