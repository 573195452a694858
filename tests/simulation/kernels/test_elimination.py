"""SR, SH, CR, DSR, DSH and Uniform draw what their definitions say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.simulation.complexity import olog
from service.simulation.environments import of_means
from service.simulation.runner import blocks_of, cell, play_block
from tests.simulation.playing import certain, counts_of, play_once


@pytest.mark.parametrize(("arms", "budget"), [(2, 20), (7, 100), (40, 2000)])
def test_sr_draws_its_phases(arms: int, budget: int) -> None:
    """Sorted, the counts are n_1 .. n_{K-1} with the last one twice, and fit into the budget."""
    trace, picks = play_once(of_means([float(i) for i in range(arms)]), "sr", budget)
    phases = [math.ceil((budget - arms) / (olog(arms) * (arms + 1 - k))) for k in range(1, arms)]
    assert sorted(counts_of(trace, arms)) == sorted([*phases, phases[-1]])
    assert sum(counts_of(trace, arms)) <= budget
    assert 0 <= picks[-1] < arms


def test_sr_drops_the_worst_first() -> None:
    """With certain rewards the order of elimination is the order of the means (ties: the highest position)."""
    trace, picks = play_once(certain([0.0, 1.0, 0.0]), "sr", 30)
    counts = counts_of(trace, 3)
    assert counts[2] < counts[0] == counts[1]
    assert picks[-1] == 1


def test_sh_halves() -> None:
    """40 arms: 40, 20, 10, 5, 3, 2 of them, each round with floor(T / (|S| L)) fresh draws of each."""
    trace, _ = play_once(of_means([float(i) for i in range(40)]), "sh", 2000)
    sizes = (40, 20, 10, 5, 3, 2)
    rounds = [2000 // (size * 6) for size in sizes]
    expected = sum(
        (size - after) * sum(rounds[: k + 1]) for k, (size, after) in enumerate(zip(sizes, (*sizes[1:], 0), strict=True))
    )
    assert sum(counts_of(trace, 40)) == expected
    assert max(counts_of(trace, 40)) == sum(rounds)


def test_sh_judges_a_round_by_its_own_draws() -> None:
    """SH recommends the best arm of the latest finished round, and none before the first ended."""
    _, picks = play_once(certain([0.0, 1.0, 0.0, 0.0]), "sh", 80, checkpoints=[39, 41, 79])
    assert picks.tolist() == [-1, 1, 1, 1]


def test_doubling_recommends_the_last_finished_epoch() -> None:
    """K = 4: T1 = 8; nothing is recommended before the first epoch ends."""
    for policy in ("dsr", "dsh"):
        _, picks = play_once(certain([0.0, 0.0, 1.0, 0.0]), policy, 100, checkpoints=[4, 30, 60])
        assert picks.tolist() == [-1, 2, 2, 2]


def test_doubling_forgets() -> None:
    """The first epoch of DSR is a whole SR with the budget T1."""
    environment = of_means([float(i) for i in range(8)])
    doubled, _ = play_once(environment, "dsr", 24)
    phases = [math.ceil((24 - 8) / (olog(8) * (9 - k))) for k in range(1, 8)]
    assert counts_of(doubled, 8)[7] >= phases[-1]
    assert sum(counts_of(doubled, 8)) == 24


def test_continuous_rejects_start_after_theta0() -> None:
    """Up to theta0 T all arms are drawn in turn; then the hopeless arm leaves at the next full pass."""
    trace, picks = play_once(of_means([0.0, 5.0, 5.1]), "cr_a:theta0=0.5", 120)
    assert trace[:60].tolist() == [0, 1, 2] * 20
    assert set(trace[66:].tolist()) == {1, 2}
    assert picks[-1] in (1, 2)


def test_cr_c_compares_with_the_next_worst() -> None:
    """Two equally bad arms protect each other from CR-C's gap test, not from CR-A's."""
    means = of_means([0.0, 0.0, 9.0, 9.1])
    first_out = {}
    for policy in ("cr_a", "cr_c"):
        trace, _ = play_once(means, policy, 400)
        first_out[policy] = min(counts_of(trace, 4)[:2])
    assert first_out["cr_a"] < first_out["cr_c"]


def test_uniform_is_a_round_robin() -> None:
    """Every arm in turn."""
    trace, picks = play_once(certain([0.0, 0.0, 1.0]), "uniform", 10)
    assert trace.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert picks[-1] == 2


@pytest.mark.parametrize("policy", ["sr", "sh", "dsr", "uniform"])
def test_drawing_a_stage_at_once_changes_no_probability(policy: str) -> None:
    """A stage drawn as one normal errs as often as one drawn one by one, within five standard errors."""
    environment = of_means([0.5, 0.0, 0.0, 0.2, 0.1])
    budget, runs = 60, 3000
    at_once = sum(play_block(block)[0] for block in blocks_of(cell(environment, policy, budget), runs, 3)) / runs
    single = np.mean([play_once(environment, policy, budget, seed=seed)[1][-1] != 0 for seed in range(runs)])
    error = math.sqrt(2 * 0.25 / runs)
    assert abs(at_once - single) < 5 * error
