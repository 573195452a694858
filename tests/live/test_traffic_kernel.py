"""The compiled loop of the traffic studies draws what the service's policy would draw."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import live_kernel as kernel
from service.exact import NO_REWARDS, Moments
from service.policy.base import Evidence, Floats, Ints
from service.policy.simple_tracking import SimpleTracking

pytestmark = pytest.mark.study
_NO_CHANGES = np.zeros((0, 3), np.int64)


def drawn_by_the_policy(
    means: Floats,
    chance: Floats,
    lateness: Ints,
    *,
    binary: bool,
    window: int,
    expiry: float | None,
    changes: dict[int, tuple[int, bool]],
    present: set[int],
) -> list[int]:
    """The arms that service/policy draws when draw s is told before ask s + 1 + lateness, or expires after the window."""
    arms = len(means)
    observed: list[Moments] = [NO_REWARDS] * arms
    pending, epoch_draws = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    active, epoch = set(present), 0
    policy = SimpleTracking()
    drawn: list[int] = []
    due: dict[int, list[int]] = {}
    epochs: list[int] = []
    told: set[int] = set()
    rewards: list[float] = []
    for ask in range(len(chance)):
        for draw in due.pop(ask, []):
            observed[drawn[draw]] = observed[drawn[draw]].with_reward(rewards[draw])
            pending[drawn[draw]] -= 1
            told.add(draw)
        silent = ask - 1 - window
        if window and silent >= 0 and silent not in told:
            arm = drawn[silent]
            pending[arm] -= 1
            if expiry is not None:
                observed[arm] = observed[arm].with_reward(expiry)
            elif epochs[silent] == epoch:
                epoch_draws[arm] -= 1
        if ask in changes:
            arm, enabled = changes[ask]
            active = active | {arm} if enabled else active - {arm}
            epoch += 1
            epoch_draws[:] = 0
        places = sorted(active)
        known = [
            observed[arm] if expiry is None else observed[arm] + Moments(int(pending[arm])) for arm in places
        ]  # silence counts as zero here, which adds to the count alone
        evidence = Evidence(
            means=np.array([np.nan if (mean := one.mean()) is None else mean for one in known]),
            draws=epoch_draws[places],
            undrawn=np.array([observed[arm].count + pending[arm] == 0 for arm in places]),
            floors=np.zeros(len(places)),
        )
        choice, _ = policy.choose(evidence, lambda: policy.targets(evidence))  # noqa: B023 - used at once
        arm = places[choice.index]
        drawn.append(arm)
        epochs.append(epoch)
        pending[arm] += 1
        epoch_draws[arm] += 1
        late = int(lateness[ask])
        if binary:
            rewards.append(float(chance[ask] < means[arm]))
            late = late if rewards[-1] or expiry is None else -1
        else:
            rewards.append(float(np.rint((means[arm] + chance[ask]) * 2**20) / 2**20))
        if late >= 0:
            due.setdefault(ask + 1 + late, []).append(ask)
    return drawn


@pytest.mark.parametrize("delay", [0, 3, 40])
@pytest.mark.parametrize(("loss", "window"), [(0.0, 0), (0.3, 0), (0.3, 60)])
def test_late_and_lost_rewards_are_drawn_alike(delay: int, loss: float, window: int) -> None:
    """Gaussian rewards, late, lost for ever or dropped after a window: the same arms, draw for draw."""
    rng = np.random.default_rng([delay, window, int(loss * 10)])
    means = rng.normal(size=12)
    chance = rng.standard_normal(900)
    lateness = np.where(rng.random(900) < loss, -1, delay).astype(np.int64)
    silence = kernel.DROP if window else kernel.WAIT
    everyone = np.ones(12, np.bool_)
    drawn, _, _, _ = kernel.simulate(
        means, chance, lateness, False, silence, window, False, True, True, _NO_CHANGES, everyone, np.array([900]), 10**9
    )
    expected = drawn_by_the_policy(
        means, chance, lateness, binary=False, window=window, expiry=None, changes={}, present=set(range(12))
    )
    assert drawn.tolist() == expected


def test_conversions_silence_and_changing_arms_are_drawn_alike() -> None:
    """Binary rewards, zeros by expiry, an arm added and one disabled and enabled again: the same arms, draw for draw."""
    rng = np.random.default_rng(3)
    rates = np.full(6, 0.2)
    rates[2] = 0.4
    chance = rng.random(1_500)
    lateness = rng.geometric(1 / 20, 1_500).astype(np.int64)
    lateness = np.minimum(lateness, 199)
    changes = {400: (5, True), 700: (1, False), 1_000: (1, True)}
    rows = np.array([[ask, arm, int(enabled)] for ask, (arm, enabled) in changes.items()])
    present = np.array([True] * 5 + [False])
    drawn, _, _, _ = kernel.simulate(
        rates, chance, lateness, True, kernel.ZERO, 200, True, True, True, rows, present, np.array([1_500]), 10**9
    )
    expected = drawn_by_the_policy(
        rates, chance, lateness, binary=True, window=200, expiry=0.0, changes=changes, present=set(range(5))
    )
    assert drawn.tolist() == expected


def test_imputed_silence_without_lateness_is_the_synchronous_loop() -> None:
    """Conversions told at once and everything else counted as the zero that expiry will make it: the paper's own draws."""
    rng = np.random.default_rng(8)
    rates = np.full(10, 0.05)
    rates[4] = 0.08
    chance, at_once = rng.random(5_000), np.zeros(5_000, np.int64)
    everyone, looks = np.ones(10, np.bool_), np.array([5_000])
    live, told = (
        kernel.simulate(rates, chance, at_once, True, silence, window, impute, True, True, _NO_CHANGES, everyone, looks, 10**9)
        for silence, window, impute in ((kernel.ZERO, 1_000, True), (kernel.WAIT, 0, False))
    )
    assert live[0].tolist() == told[0].tolist()


def test_many_arms_with_exchanged_costs_are_drawn_alike() -> None:
    """Forty arms and thousands of exchanges of single costs: still the same arms."""
    rng = np.random.default_rng(11)
    means = np.concatenate([[0.5], np.zeros(39)])
    chance = rng.standard_normal(4_000)
    lateness = np.zeros(4_000, np.int64)
    everyone = np.ones(40, np.bool_)
    drawn, _, _, _ = kernel.simulate(
        means, chance, lateness, False, kernel.WAIT, 0, False, True, True, _NO_CHANGES, everyone, np.array([4_000]), 10**9
    )
    expected = drawn_by_the_policy(
        means, chance, lateness, binary=False, window=0, expiry=None, changes={}, present=set(range(40))
    )
    assert drawn.tolist() == expected
