"""Almost Tracking [paper, Algorithm R_track_almost]: batches split over all arms that are behind; rate-optimal for H1.

Batch 1 draws every arm alike. Each later batch draws the insufficiently sampled arms in proportion to their weights:

    insufficient = { i : share_i <= w_i(Q) / C_suf + 1e-9 },   w_b = w restricted to them and normalised.

The paper leaves open what share_i is: `planned` (literal, the default) averages the weights of the batches so far,
`realised` takes draws/t. Live: a batch is planned by the first ask after the last one was handed out; the average, and the
test with it, start anew after a change of arms; an arm without any draw that is not in the plan is drawn once beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from service.policy.base import Choice, Evidence, Floats, Targets, mix_floors
from service.policy.ceiling import add_remainder, constant_ratio_ceiling
from service.policy.memory import TargetMemory, remembered_targets
from service.policy.plan import Plan
from service.policy.run import Run
from service.policy.weights import PAPER, WeightRule, mixed_targets

_SUFFICIENCY_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class AlmostTracking:
    """Track the H1 weights in batches."""

    seed: int
    batch_size: int | None = None
    sufficiency: float = 0.999
    sufficiency_by: Literal["planned", "realised"] = "planned"
    rule: WeightRule = PAPER

    def targets(self, evidence: Evidence) -> Floats:
        """The H1 weights with the floors mixed in."""
        return mixed_targets(evidence.means, evidence.floors, self.rule)

    def fast_targets(self, evidence: Evidence, memory: TargetMemory | None) -> tuple[Floats, TargetMemory | None]:
        """The same, from what is remembered of the last time."""
        targets, memory = remembered_targets(evidence.means, self.rule, memory)
        return mix_floors(targets, evidence.floors), memory

    def run(self, evidence: Evidence, targets: Targets) -> Run | None:  # noqa: ARG002 - its batches are what a run is for others
        """None: a planned draw costs next to nothing."""
        return None

    def choose(
        self,
        evidence: Evidence,
        targets: Targets,  # noqa: ARG002 - a plan is stored and replayed to the bit, so the direct formula makes it
        plan: Plan | None = None,
    ) -> tuple[Choice, Plan | None]:
        """The next draw of the batch, planning a new batch first if the last one was handed out."""
        if plan is None or plan.finished:
            plan = self.next_plan(evidence, partial(self.targets, evidence), plan or Plan.before_first(len(evidence.draws)))
        forgotten = np.flatnonzero(evidence.undrawn & (plan.planned == 0))
        if len(forgotten):
            return Choice(int(forgotten[0]), "warmup"), plan
        index = plan.next_index()
        return Choice(index, "batch"), plan.hand_out(index)

    def next_plan(self, evidence: Evidence, targets: Targets, last: Plan) -> Plan:
        """The batch after `last`: its weights, its integer counts, and the sums that the next test will average."""
        arms = len(evidence.draws)
        batch = last.batch + 1
        size = max(self.batch_size or 0, 2 * arms)
        rng = np.random.default_rng([self.seed, batch])
        if batch == 1:
            weights = mix_floors(np.full(arms, 1.0 / arms), evidence.floors)
        else:
            weights = self.batch_weights(evidence, targets(), last)
        if batch == 1 and not evidence.floors.any():
            counts = add_remainder(np.full(arms, size // arms, np.int64), weights, size, rng)
        else:
            counts = constant_ratio_ceiling(weights, size, rng)
        return Plan(batch, counts, counts, 0, last.weight_sums + weights, last.averaged + 1)

    def batch_weights(self, evidence: Evidence, targets: Floats, last: Plan) -> Floats:
        """The targets restricted to the insufficiently drawn arms; all of them after a change of arms."""
        if last.averaged == 0:
            return targets
        shares = last.weight_sums / last.averaged if self.sufficiency_by == "planned" else evidence.draw_shares()
        insufficient = shares <= targets / self.sufficiency + _SUFFICIENCY_SLACK
        chosen: Floats = np.where(insufficient, targets, 0.0)
        weights: Floats = chosen / chosen.sum()
        return weights
