"""`auto`: the policy that the studies recommend for a kind of rewards and a number of arms (docs/guarded-weights.md).

It is resolved once, when an experiment is created, and stored as what it became: a later version of this table changes nothing
under a running experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.domain import PolicySpec

if TYPE_CHECKING:
    from service.domain import RewardKind


@dataclass(frozen=True, slots=True)
class AutomaticPolicy:
    """A policy still to be chosen."""

    seed: int

    def resolved(self, reward: RewardKind, arms: int) -> PolicySpec:  # noqa: ARG002 - the study found no difference to make
        """The policy that an experiment gets for it."""
        return PolicySpec("simple_tracking", self.seed, sharpness=2.0, guard=0.5, ties="limit", keeps_floors=True)
