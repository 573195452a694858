"""EB-TC-eps0 (Jourdan, Degenne, Kaufmann 2023), "fixed" with beta = 1/2 and eps0 = 0.1 as in the paper. Anytime.

Each arm once; leader B = argmax Q; challenger C = argmin_{j != B} (Q_B - Q_j + eps0) / sqrt(1/N_B + 1/N_j); B is drawn
iff its draws while it led are at most half the times it led. Open: whether "times it led" counts the present one (taken:
yes, as in its source). Ties: the lowest position. Recommends argmax Q.
With `:binary` 1/N is p(1 - p)/N and eps0 is in units of the leader's deviation, as it is for unit variance.
"""

from __future__ import annotations

import math

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.top_two import lowest, refresh_variances, variance_of_reward
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


@compiled
def slack_costs(means: Floats, variances: Floats, leader: int, slack: float, costs: Floats) -> None:
    """The cost of believing that arm j beats the leader by eps0."""
    for j in range(len(means)):
        costs[j] = (means[leader] - means[j] + slack) / math.sqrt(variances[leader] + variances[j])
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
    slack: float,
    binary: bool,
) -> None:
    """One run with eps0 = `slack`."""
    book, post = open_book(truth), open_post(world)
    arms = len(truth)
    variances, costs = np.ones(arms), np.zeros(arms)
    led, drawn_leading = np.zeros(arms), np.zeros(arms)
    means = book[MEANS]
    live = is_live(world)
    shown = 0
    for time in range(budget):
        arm = time
        if time >= arms:
            arm = best_of(means)
            led[arm] += 1.0
            if drawn_leading[arm] <= 0.5 * led[arm]:
                drawn_leading[arm] += 1.0
            else:
                slack_costs(means, variances, arm, slack * math.sqrt(variance_of_reward(book, arm, binary)), costs)
                arm = lowest(costs)
        draw_for_baseline(world, book, post, trace, arm, time, rng)
        refresh_variances(book, variances, arm, live, binary)
        if is_due(checkpoints, shown, time + 1):
            picks[shown] = best_of(means)
            shown += 1
