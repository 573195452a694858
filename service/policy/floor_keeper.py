"""A floor is a promise: whatever the policy, an arm that is a whole draw behind its floor is drawn first.

With floors f_i, N_i draws of arm i and t draws so far, the arm with the largest

    debt_i = f_i (t + 1) - N_i

is drawn if its debt is at least 1; else the policy chooses as it would. Targets alone do not keep the promise: batches give every
planned arm a draw at least, a first round draws each of many arms once, and targets that jump leave an arm behind for a while.

Guarantee: share_i >= f_i - (1 + ln K)/t after every draw t, with K the number of arms that have a floor: within 1% from 1,000
draws on for up to 8,000 of them. The proof is in docs/weights.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.policy.base import Choice

if TYPE_CHECKING:
    from service.policy.base import Evidence, Floats, Policy, Reason, Targets
    from service.policy.memory import TargetMemory
    from service.policy.plan import Plan
    from service.policy.run import Run


def most_owed(floors: Floats, evidence: Evidence) -> int | None:
    """The lowest of the arms that are furthest behind their floors, if that is a draw or more."""
    debts = floors * (float(np.add.reduce(evidence.draws)) + 1.0) - evidence.draws
    index = int(debts.argmax())
    return index if debts[index] >= 1.0 else None


@dataclass(frozen=True, slots=True)
class FloorKeeper:
    """Another policy that chooses once no arm is owed a draw."""

    policy: Policy

    def targets(self, evidence: Evidence) -> Floats:
        """The other policy's, which include the floors."""
        return self.policy.targets(evidence)

    def fast_targets(self, evidence: Evidence, memory: TargetMemory | None) -> tuple[Floats, TargetMemory | None]:
        """The same, from what is remembered of the last time."""
        return self.policy.fast_targets(evidence, memory)

    def choose(self, evidence: Evidence, targets: Targets, plan: Plan | None) -> tuple[Choice, Plan | None]:
        """The arm that is owed a draw, beside any plan; else the other policy's choice."""
        owed = most_owed(evidence.floors, evidence)
        if owed is None:
            return self.policy.choose(evidence, targets, plan)
        reason: Reason = "warmup" if evidence.undrawn[owed] else "track"
        return Choice(owed, reason), plan

    def run(self, evidence: Evidence, targets: Targets) -> Run | None:
        """The same choices, draw after draw."""
        run = self.policy.run(evidence, targets)
        return None if run is None else run.keeping(evidence.floors.tolist())
