"""The policy's arrays follow the statistics, whatever is told of them, and equal those that are made anew."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from service.domain import ArmStatus, Expiry, PolicyKind
from service.engine.allocator import Allocator
from service.engine.ledger import Ledger
from testing.ledgers import new_ledger


def _equal_to_new(ledger: Ledger) -> None:
    """What is brought up to date step by step is what one look at all statistics gives."""
    kept, made = ledger.allocator, Allocator(ledger.progress, ledger.arms, ledger.statistics)
    assert kept.active == made.active
    for name in ("means", "draws", "undrawn", "floors"):
        assert np.array_equal(getattr(kept.evidence(), name), getattr(made.evidence(), name), equal_nan=name == "means")
    assert np.array_equal(kept.targets(), made.targets())


@pytest.mark.parametrize("policy", ["simple_tracking", "uniform"])
@pytest.mark.parametrize("expiry", [None, Expiry(60.0, 0.25)], ids=["no expiry", "numeric expiry"])
def test_what_is_kept_up_to_date_is_what_would_be_made_anew(policy: PolicyKind, expiry: Expiry | None) -> None:
    """Through draws, rewards, corrections, voids and arms that leave and come back; a disabled arm is never chosen."""
    dice, ledger = random.Random(5), new_ledger(policy, expiry)  # noqa: S311 - any choices will do
    for step in range(120):
        drawn = ledger.draw(None, None, step)
        assert ledger.arms[drawn.arm].active
        known = dice.choice(list(ledger.recent_draws.values()))
        if known.state.status == "pending":
            ledger.step(known, "reward", dice.random(), step)
        elif known.state.status == "rewarded":
            reward = dice.choice([None, dice.random()])
            ledger.step(known, "void" if reward is None else "correction", reward, step)
        if step % 30 == 29:
            status: ArmStatus = "disabled" if ledger.arms[2].active else "active"
            ledger.change_arm(replace(ledger.arms[2], status=status), {"after": {"status": status}}, step)
        if step % 7 == 0:
            _equal_to_new(ledger)
    _equal_to_new(ledger)
