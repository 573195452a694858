"""Pooled Allocation [paper, Algorithm pooled]: the two-approximation of the theory, not meant for practice. Needs T.

Batches of T/B = 2K draws. The first K draw one arm each and give its pool mean; each later one counts a victory for the
arm with the best pool mean, draws w_i(pool) * T/B times by the constant-ratio ceiling, and moves the pool: pool <- (1 -
w) pool + w Q_b (an arm without a draw keeps its own). Recommended is the arm with most victories. Open: B (taken: floor(T
/ 2K), so that the ceiling's lemma holds), and the optimal weights, for which the H1 weights stand in. It needs T >= 2K (K
+ 1) for a first victory, and recommends none before.
"""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.almost_tracking_kernel import split
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.traffic import (
    MEANS,
    OBSERVED,
    World,
    draw_for_baseline,
    forget,
    is_due,
    open_book,
    open_post,
)
from service.simulation.kernels.weights_kernel import targets_from_means


@compiled
def _front_runner(victories: Ints) -> int:
    """The arm with most victories, the lowest among equals; -1 before the first victory."""
    return int(np.argmax(victories)) if victories.max() > 0 else -1


@compiled
def play(
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    no_uniforms: Floats,
) -> None:
    """One run; `no_uniforms` is an empty array (the ceiling takes its own from the generator)."""
    book, post = open_book(truth), open_post(world)
    arms = len(truth)
    size = 2 * arms
    pool, weights = np.zeros(arms), np.zeros(arms)
    victories = np.zeros(arms, np.int64)
    time = shown = 0
    for batch in range(budget // size):
        forget(book)
        if batch < arms:
            weights[:] = 0.0
            weights[batch] = 1.0
        else:
            victories[np.argmax(pool)] += 1
            weights[:] = targets_from_means(pool, 1.0, 0.0, False)
        counts = split(weights, size, rng, no_uniforms)
        for arm in range(arms):
            for _ in range(counts[arm]):
                draw_for_baseline(world, book, post, trace, arm, time, rng)
                time += 1
                if is_due(checkpoints, shown, time):
                    picks[shown] = _front_runner(victories)
                    shown += 1
            if book[OBSERVED, arm] > 0.0:
                pool[arm] = (1.0 - weights[arm]) * pool[arm] + weights[arm] * book[MEANS, arm]
    picks[min(shown, len(picks) - 1) :] = _front_runner(victories)
