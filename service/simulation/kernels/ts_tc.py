"""TS-TC (Shang et al. 2020, Jourdan et al. 2022): Thompson-sampled leader, transportation-cost challenger. Anytime.

Each arm once; leader B = argmax of theta_i ~ N(Q_i, 1/N_i); challenger as in EB-TC with cost 0 where Q_j >= Q_B; B with
probability 1/2, else C. Open: ties of the cost, which are common here. Taken: uniformly at random, because the lowest
position would favour the best arm of nine of the ten instances. Recommends argmax Q.
With `:binary` 1/N is p(1 - p)/N.
"""

from __future__ import annotations

import math

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.eb_tc import transport_costs
from service.simulation.kernels.normals import fill_normals, seeded
from service.simulation.kernels.top_two import refresh_variances
from service.simulation.kernels.traffic import (
    MEANS,
    World,
    best_of,
    draw_for_baseline,
    is_due,
    is_live,
    open_book,
    open_post,
)

_LEADER_SHARE = 0.5


@compiled
def sampled_leader(means: Floats, deviations: Floats, normals: Floats) -> int:
    """The arm that wins one draw from all posteriors."""
    leader, top = 0, -np.inf
    for i in range(len(means)):
        sample = means[i] + deviations[i] * normals[i]
        if sample > top:
            leader, top = i, sample
    return leader


@compiled
def random_lowest(costs: Floats, rng: np.random.Generator) -> int:
    """A position with the smallest cost, uniformly at random."""
    least = costs.min()
    tied, pick = 0, -1
    for j in range(len(costs)):
        if costs[j] == least:
            tied += 1
            if tied == 1 or rng.random() * tied < 1.0:
                pick = j
    return pick


@compiled
def play(
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    binary: bool,
) -> None:
    """One run: the recommendation at every checkpoint goes into `picks`."""
    book, post = open_book(truth), open_post(world)
    arms = len(truth)
    variances, deviations, costs = np.ones(arms), np.ones(arms), np.zeros(arms)
    state, normals = seeded(rng), np.zeros(arms)
    means = book[MEANS]
    live = is_live(world)
    shown = 0
    for time in range(budget):
        arm = time
        if time >= arms:
            fill_normals(state, normals)
            arm = sampled_leader(means, deviations, normals)
            if rng.random() >= _LEADER_SHARE:
                transport_costs(means, variances, arm, costs)
                arm = random_lowest(costs, rng)
        draw_for_baseline(world, book, post, trace, arm, time, rng)
        refresh_variances(book, variances, arm, live, binary)
        if live:
            deviations[:] = np.sqrt(variances)
        else:
            deviations[arm] = math.sqrt(variances[arm])
        if is_due(checkpoints, shown, time + 1):
            picks[shown] = best_of(means)
            shown += 1
