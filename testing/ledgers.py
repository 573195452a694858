"""A ledger without a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.domain import Arm, ArmRecord, ArmStatistics, Experiment, PolicySpec, Progress, RewardSpec
from service.engine.ledger import Ledger

if TYPE_CHECKING:
    from service.domain import Expiry, PolicyKind

ARMS = 3


def new_ledger(policy: PolicyKind = "simple_tracking", expiry: Expiry | None = None, floor: float | None = None) -> Ledger:
    """A running experiment of some arms; with a floor, the last arm has it and the policy keeps it."""
    spec = PolicySpec(policy, seed=7, keeps_floors=floor is not None)
    experiment = Experiment(1, "e", "e", "", spec, RewardSpec(), expiry, False, 0.95, None, "running", None, 0)
    floors = [0.0] * (ARMS - 1) + [floor or 0.0]
    arms = [
        ArmRecord(Arm(position, f"arm-{position}", "", None, min_share=floor), ArmStatistics())
        for position, floor in enumerate(floors)
    ]
    return Ledger(Progress(experiment, version=1, as_of=0, draws=0, epoch=1), arms)
