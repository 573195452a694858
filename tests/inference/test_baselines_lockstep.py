"""The studies play the simulator's baselines: side by side they draw the arms that its kernels draw."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.inference_baselines import BASELINES, Baselines
from benchmarks.inference_instances import bernoulli
from benchmarks.inference_lockstep import Runs
from service.simulation.environments import of_means
from service.simulation.kernels.catalogue import contender
from service.simulation.runner import world_of

DRAWS, SEED = 600, 7


@pytest.mark.parametrize("name", BASELINES)
def test_a_run_draws_the_arms_of_the_kernel(name: str) -> None:
    """With the same random numbers in the same order, where ties of means are common."""
    means = [0.3, 0.35, 0.2, 0.5, 0.45, 0.1]
    trace, rng = np.zeros(DRAWS, np.int64), np.random.default_rng(SEED)
    chosen, none = contender(name), np.zeros(0, np.int64)
    world = world_of(of_means(means, "bernoulli"), traced=True)
    chosen.play()(np.array(means), world, DRAWS, none, none, trace, rng, *chosen.parameters(len(means)))

    instance, rng = bernoulli("six coins", np.array(means)), np.random.default_rng(SEED)
    state, baselines = Runs(instance, 1), Baselines(name, 1, len(means), rng)
    for drawn in trace:
        arms = baselines.next_arms(state)
        assert arms[0] == drawn
        state.add(arms, instance.draw(rng, arms))


@pytest.mark.parametrize("name", BASELINES)
def test_runs_do_not_hang_together(name: str) -> None:
    """Runs with other rewards part, each with its own leaders."""
    instance, rng = bernoulli("three coins", np.array([0.2, 0.5, 0.4])), np.random.default_rng(SEED)
    state, baselines = Runs(instance, 20), Baselines(name, 20, 3, np.random.default_rng(SEED + 1))
    for _ in range(300):
        arms = baselines.next_arms(state)
        state.add(arms, instance.draw(rng, arms))
    assert len(np.unique(state.counts, axis=0)) > 10
    assert (state.counts.sum(axis=1) == 300).all()
