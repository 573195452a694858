"""CR-A and CR-C, Continuous Rejects (Wang, Tzeng, Proutiere 2023). Need T; theta0 = 0.01 as in the paper.

Active arms C are drawn in turn. Once more than theta0 * T draws are made, and whenever all of C have equally many, the
worst arm l leaves if |C| > 2, it has more draws than any arm that left, and, with j = |C|,

    CR-C: min_{C without l} Q - Q_l >= G,   CR-A: mean_{C without l} Q - Q_l >= G,
    G = 1/sqrt(beta) - 1,   beta = olog(j) * sum_C N / (T - sum_{not C} N).

beta > 1 makes G negative and so forces a rejection. Open: olog of the current j or of K (taken: j); the authors' own
program leaves out the condition of equal draws (kept here, as printed). Equal draws hold exactly after each pass over C,
and an arm that left has fewer than the others after the next pass, so testing once a pass is the whole rule. Over time:
the best active arm.
"""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.successive_rejects import olog
from service.simulation.kernels.traffic import (
    DRAWS,
    MEANS,
    World,
    best_active,
    draw_for_baseline,
    is_due,
    open_book,
    open_post,
)


@compiled
def worst_and_margin(means: Floats, active: Ints, size: int, average: bool) -> tuple[int, float]:
    """The worst active arm (the lowest among equals), and how far it lies below the mean (CR-A) or the next worst (CR-C)."""
    worst = -1
    for i in range(len(active)):
        if active[i] and (worst < 0 or means[i] < means[worst]):
            worst = i
    total, lowest = 0.0, np.inf
    for i in range(len(active)):
        if active[i] and i != worst:
            total += means[i]
            lowest = min(lowest, means[i])
    other = total / (size - 1) if average else lowest
    return worst, other - means[worst]


@compiled
def play(
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    start: float,
    average: bool,
) -> None:
    """One run; `start` is theta0, `average` makes it CR-A."""
    book, post = open_book(truth), open_post(world)
    arms = len(truth)
    active = np.ones(arms, np.int64)
    size, gone = arms, 0.0
    time = shown = 0
    while time < budget:
        if time >= arms and time > np.floor(start * budget) and size > 2:  # noqa: PLR2004 - two arms always stay
            beta = olog(size) * (time - gone) / (budget - gone)
            worst, margin = worst_and_margin(book[MEANS], active, size, average)
            if margin >= 1.0 / np.sqrt(beta) - 1.0:
                active[worst] = 0
                size -= 1
                gone += book[DRAWS, worst]
        for arm in range(arms):
            if not active[arm] or time == budget:
                continue
            draw_for_baseline(world, book, post, trace, arm, time, rng)
            time += 1
            if is_due(checkpoints, shown, time):
                picks[shown] = best_active(book[MEANS], active)
                shown += 1
