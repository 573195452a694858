"""The running batch of Almost Tracking: a value that is stored, handed out draw by draw, and outlives restarts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from service.policy.base import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How many draws of each active arm the current batch holds, and what past batches planned."""

    batch: int
    """Number of the batch, from 1 over the experiment's life; 0 before the first."""
    planned: Ints
    """Draws of each arm in this batch; 0 for an arm that is not in it."""
    left: Ints
    """Draws not handed out yet."""
    cursor: int
    """Where the current pass over the positions goes on."""
    weight_sums: Floats
    """Sum of the batch weights since the last restart."""
    averaged: int
    """How many batches that sum holds; 0 after a change of arms."""

    @staticmethod
    def before_first(arms: int) -> Plan:
        """The plan before any batch: every arm at zero."""
        none = np.zeros(arms, np.int64)
        return Plan(0, none, none, 0, np.zeros(arms), 0)

    @property
    def finished(self) -> bool:
        """True when every draw was handed out or struck."""
        return not self.left.any()

    def next_index(self) -> int:
        """The arm whose turn it is: passes over the positions, each arm with draws left once per pass."""
        ahead = np.flatnonzero(self.left[self.cursor :])
        return self.cursor + int(ahead[0]) if len(ahead) else int(np.flatnonzero(self.left)[0])

    def hand_out(self, index: int) -> Plan:
        """The plan after one draw of this arm."""
        left = self.left.copy()
        left[index] -= 1
        return replace(self, left=left, cursor=index + 1)
