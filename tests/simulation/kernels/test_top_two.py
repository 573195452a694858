"""EB-TC, TS-TC, EB-TC-eps0 and Pooled Allocation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from service.simulation.environments import of_means
from service.simulation.kernels.eb_tc import transport_costs
from service.simulation.kernels.eb_tc_eps0 import slack_costs
from service.simulation.kernels.normals import fill_normals, seeded
from service.simulation.kernels.top_two import variance_of_mean
from service.simulation.kernels.ts_tc import random_lowest
from tests.simulation.playing import certain, counts_of, play_once


def test_transport_costs() -> None:
    """(Q_B - Q_j)^2 / (1/N_B + 1/N_j), 0 where arm j looks at least as good."""
    costs = np.zeros(4)
    transport_costs(np.array([1.0, 0.5, 1.5, 0.0]), np.array([0.5, 0.25, 1.0, 0.5]), 0, costs)
    assert costs.tolist() == [np.inf, 0.25 / 0.75, 0.0, 1.0]


def test_slack_costs() -> None:
    """(Q_B - Q_j + eps0) / sqrt(1/N_B + 1/N_j)."""
    costs = np.zeros(2)
    slack_costs(np.array([1.0, 0.5]), np.array([0.5, 0.5]), 0, 0.1, costs)
    assert costs[1] == pytest.approx(0.6)


def test_ties_of_the_cost_are_broken_uniformly() -> None:
    """Three tied challengers are picked equally often."""
    rng = np.random.default_rng(2)
    costs = np.array([np.inf, 0.0, 3.0, 0.0, 0.0])
    found = np.bincount([random_lowest(costs, rng) for _ in range(6000)], minlength=5)
    assert found[[0, 2]].sum() == 0
    assert stats.chisquare(found[[1, 3, 4]]).pvalue > 1e-4


@pytest.mark.parametrize("policy", ["eb_tc", "ts_tc", "eb_tc_eps0"])
def test_half_of_the_draws_go_to_the_leader(policy: str) -> None:
    """With one clearly best arm it is drawn about every second time."""
    trace, picks = play_once(of_means([0.0, 6.0, 0.0]), policy, 2000)
    assert picks[-1] == 1
    assert abs(counts_of(trace, 3)[1] / 2000 - 0.5) < 0.05


def test_eps0_draws_the_leader_exactly_in_turn() -> None:
    """Its draws while leading are at most half the times it led: with certain rewards, B B C B C B and so on."""
    trace, _ = play_once(certain([1.0, 0.0]), "eb_tc_eps0", 12)
    assert trace[2:].tolist() == [0, 0, 1, 0, 1, 0, 1, 0, 1, 0]


def test_pooled_draws_one_arm_a_batch_first() -> None:
    """K batches of 2K draws, one arm each; then the batches follow the weights."""
    trace, picks = play_once(of_means([0.0, 0.0, 4.0]), "pooled", 60)
    assert trace[:18].tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert picks[-1] == 2


def test_bulk_normals_are_normal() -> None:
    """Kolmogorov-Smirnov, the first four moments, and the tail beyond the ziggurat's base strip."""
    values = np.zeros(1_000_000)
    fill_normals(seeded(np.random.default_rng(11)), values)
    assert stats.kstest(values, "norm").pvalue > 1e-4
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        spread = np.sqrt((np.prod(np.arange(1, 2 * power, 2)) - moment**2) / len(values))
        assert abs((values**power).mean() - moment) < 5 * spread
    expected = 2 * stats.norm.sf(3.6541528853610088) * len(values)
    assert abs((np.abs(values) > 3.6541528853610088).sum() - expected) < 5 * np.sqrt(expected)


def test_the_variance_of_binary_rewards() -> None:
    """p(1 - p)/N with p after half a success and half a failure more; 1/N where nothing is said."""
    book = np.zeros((5, 2))
    book[1], book[2] = [9.0, 0.0], [2.0, 0.0]
    assert variance_of_mean(book, 0, True) == pytest.approx(0.25 * 0.75 / 9)
    assert variance_of_mean(book, 1, True) == pytest.approx(0.25)
    assert variance_of_mean(book, 0, False) == pytest.approx(1 / 9)
