"""Uniform: equal traffic for all arms (with floors: w' = f + (1 - sum f)/K), the baseline and the plain A/B/n test.

Tracking equal targets with ties to the lowest position is a round robin; after a gap (a dropped draw, a new epoch) it catches up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.policy.base import Choice, Evidence, Floats, Targets, first_undrawn, mix_floors, track
from service.policy.memory import TargetMemory
from service.policy.plan import Plan
from service.policy.run import Run, run_of


@dataclass(frozen=True, slots=True)
class Uniform:
    """Track equal shares."""

    def targets(self, evidence: Evidence) -> Floats:
        """1/K each, with the floors mixed in."""
        arms = len(evidence.means)
        return mix_floors(np.full(arms, 1.0 / arms), evidence.floors)

    def fast_targets(self, evidence: Evidence, memory: TargetMemory | None) -> tuple[Floats, TargetMemory | None]:
        """The same: there is nothing to remember."""
        return self.targets(evidence), memory

    def choose(self, evidence: Evidence, targets: Targets, plan: Plan | None = None) -> tuple[Choice, Plan | None]:
        """An arm that was never drawn, else the arm furthest below its share."""
        undrawn = first_undrawn(evidence)
        index = track(evidence, targets, targets) if undrawn is None else undrawn
        return Choice(index, "uniform"), plan

    def run(self, evidence: Evidence, targets: Targets) -> Run | None:
        """The same choices, draw after draw."""
        return run_of(evidence, targets, "uniform")
