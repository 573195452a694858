"""EB-TC (Jourdan et al. 2022): empirical-best leader, transportation-cost challenger. Anytime; made for fixed confidence.

Each arm once; leader B = argmax Q; challenger C = argmin_{j != B} (Q_B - Q_j)^2 / (1/N_B + 1/N_j); B with probability
1/2, else C. Open: ties (the lowest position; means of Gaussian rewards never tie). Recommends argmax Q.
With `:binary` 1/N is p(1 - p)/N.
"""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.top_two import lowest, refresh_variances
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
def transport_costs(means: Floats, variances: Floats, leader: int, costs: Floats) -> None:
    """What it takes to believe that arm j is at least as good as the leader; 0 if it looks so already."""
    for j in range(len(means)):
        gap = max(0.0, means[leader] - means[j])
        costs[j] = gap * gap / (variances[leader] + variances[j])
    costs[leader] = np.inf


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
    variances, costs = np.ones(arms), np.zeros(arms)
    means = book[MEANS]
    live = is_live(world)
    shown = 0
    for time in range(budget):
        arm = time
        if time >= arms:
            arm = best_of(means)
            if rng.random() >= _LEADER_SHARE:
                transport_costs(means, variances, arm, costs)
                arm = lowest(costs)
        draw_for_baseline(world, book, post, trace, arm, time, rng)
        refresh_variances(book, variances, arm, live, binary)
        if is_due(checkpoints, shown, time + 1):
            picks[shown] = best_of(means)
            shown += 1
