"""The statistics every so often, for people to look at. No decision reads them, and replay leaves them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain import Snapshot

if TYPE_CHECKING:
    from service.application.ledger import Ledger

# How many snapshots an experiment keeps: fewer when each is large, because it has many arms.
_MOST = 512
_LEAST = 64
_MOST_ENTRIES = 500_000


@dataclass(slots=True)
class Snapshots:
    """Where the last snapshot was taken, and how many changes lie between two."""

    at: int
    stride: int

    def pass_by(self, ledger: Ledger) -> tuple[list[Snapshot], bool]:
        """A snapshot for every stride; when there are too many, every second one goes (True) and the stride doubles."""
        version, arms = ledger.version, len(ledger.arms)
        stride = max(self.stride, arms)
        if version // stride == self.at // stride:
            return [], False
        self.at = version
        thin = version // stride >= max(_LEAST, min(_MOST, _MOST_ENTRIES // arms))
        if thin:
            self.stride = 2 * stride
        return [snapshot_of(ledger)], thin


def snapshot_of(ledger: Ledger) -> Snapshot:
    """The statistics as they are now."""
    targets = np.zeros(len(ledger.arms))
    targets[ledger.positions] = ledger.targets()
    matured = [one.matured for one in ledger.statistics]
    return Snapshot(
        sequence=ledger.version,
        at=ledger.as_of,
        draws=[one.draws for one in ledger.statistics],
        observations=[one.observed.count for one in ledger.statistics],
        means=[one.shown_mean() for one in ledger.statistics],
        matured=[one.count for one in matured],
        matured_means=[one.mean() for one in matured],
        matured_variances=[one.variance() for one in matured],
        targets=targets.tolist(),
        active=[arm.active for arm in ledger.arms],
    )
