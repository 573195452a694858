"""Snapshots of the course: bounded in number, even in sequence number, however long the experiment runs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from service.domain import Arm, ArmRecord, ArmStatistics, Experiment, PolicySpec, Progress, RewardSpec
from service.engine.ledger import Ledger


@pytest.mark.parametrize("arms", [2, 100])
def test_snapshots_thin_out_as_they_grow(arms: int) -> None:
    """At most one per max(stride, arms) events, never more than 1,024 kept, and the gaps between them alike."""
    experiment = Experiment(1, "long", "long", "", PolicySpec(), RewardSpec(), None, False, 0.95, None, "running", None, 0)
    records = [ArmRecord(Arm(position, f"a{position}", "", None), ArmStatistics()) for position in range(arms)]
    ledger = Ledger(Progress(experiment, version=1, as_of=1, draws=0, epoch=1), records)
    kept: list[int] = []
    for number in range(60_000):
        ledger.observe(number % arms, float(number % 3 == 0), None, 1)
        changes = ledger.take_changes()
        assert changes is not None
        kept += [snapshot.sequence for snapshot in changes.snapshots]
        if changes.thin:
            kept = [sequence for sequence in kept if (sequence // (changes.progress.snapshot_stride // 2)) % 2 == 0]
    gaps = [later - earlier for earlier, later in pairwise(kept)]
    assert 200 <= len(kept) <= 1024
    assert min(gaps) >= arms
    assert max(gaps) <= 2 * min(gaps)
