"""The statistics every so often, for people to look at. No decision reads them, and replay leaves them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from service.domain import Snapshot

if TYPE_CHECKING:
    from service.engine.ledger import Ledger

# How many snapshots an experiment keeps: fewer when each is large, because it has many arms.
_MOST = 512
_LEAST = 64
_MOST_ENTRIES = 500_000


def next_version(at: int, stride: int, arms: int) -> int:
    """The version at which the next snapshot is taken, after one at version `at`: the next multiple of the stride."""
    every = max(stride, arms)
    return (at // every + 1) * every


def due(ledger: Ledger) -> tuple[list[Snapshot], bool]:
    """A snapshot that is due; when there are too many, every second one of those before goes (True) and the stride doubles."""
    version, arms = ledger.version, len(ledger.arms)
    stride = max(ledger.snapshot_stride, arms)
    if version // stride == ledger.snapshot_at // stride:
        return [], False
    ledger.snapshot_at = version
    thin = version // stride >= max(_LEAST, min(_MOST, _MOST_ENTRIES // arms))
    if thin:
        ledger.snapshot_stride = 2 * stride
    ledger.next_snapshot = next_version(version, ledger.snapshot_stride, arms)
    return [snapshot_of(ledger)], thin


def snapshot_of(ledger: Ledger) -> Snapshot:
    """The statistics as they are now."""
    matured = [one.matured for one in ledger.statistics]
    return Snapshot(
        sequence=ledger.version,
        at=ledger.as_of,
        draws=[one.draws for one in ledger.statistics],
        observations=[one.observed.count for one in ledger.statistics],
        means=[one.known_mean() for one in ledger.statistics],
        matured=[one.count for one in matured],
        matured_means=[one.mean() for one in matured],
        matured_variances=[one.variance() for one in matured],
        targets=target_shares(ledger),
        active=[arm.active for arm in ledger.arms],
    )


def target_shares(ledger: Ledger) -> list[float]:
    """The share of the traffic that the policy wants each arm to have; 0 for disabled ones."""
    shares = np.zeros(len(ledger.arms))
    shares[ledger.allocator.positions] = ledger.targets()
    return shares.tolist()
