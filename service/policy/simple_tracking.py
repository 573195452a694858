"""Simple Tracking [paper, Algorithms R_track and R_track_prac]: the recommended policy, anytime and without tuning.

Each arm once in position order; then at every draw the arm that maximises w_i(Q) - N_i/t. Deviations: N counts pending
draws, an arm without a reward has the target 1/K, floors are mixed into the targets; each of these vanishes when every
reward is told before the next ask. Guarantee: none proved for this algorithm; it performs best of all in the paper's experiments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from service.policy.base import Choice, Evidence, Floats, Targets, first_undrawn, mix_floors, track
from service.policy.memory import TargetMemory, remembered_targets
from service.policy.plan import Plan
from service.policy.run import Run, run_of
from service.policy.weights import PAPER, WeightRule, mixed_targets


@dataclass(frozen=True, slots=True)
class SimpleTracking:
    """Track the H1 weights greedily."""

    rule: WeightRule = PAPER

    def targets(self, evidence: Evidence) -> Floats:
        """The H1 weights with the floors mixed in."""
        return mixed_targets(evidence.means, evidence.floors, self.rule)

    def fast_targets(self, evidence: Evidence, memory: TargetMemory | None) -> tuple[Floats, TargetMemory | None]:
        """The same, from what is remembered of the last time."""
        targets, memory = remembered_targets(evidence.means, self.rule, memory)
        return mix_floors(targets, evidence.floors), memory

    def choose(self, evidence: Evidence, targets: Targets, plan: Plan | None = None) -> tuple[Choice, Plan | None]:
        """An arm that was never drawn, else the arm furthest below its target."""
        undrawn = first_undrawn(evidence)
        if undrawn is not None:
            return Choice(undrawn, "warmup"), plan
        return Choice(track(evidence, targets, partial(self.targets, evidence)), "track"), plan

    def run(self, evidence: Evidence, targets: Targets) -> Run | None:
        """The same choices, draw after draw."""
        return run_of(evidence, targets, "track", self.rule)
