"""SR, Successive Rejects (Audibert, Bubeck, Munos 2010). Needs T.

n_k = ceil((T - K) / (olog(K) (K + 1 - k))); in phase k every active arm is drawn n_k - n_{k-1} more times, then the worst
by all its samples is dropped. Open: the order inside a phase (taken: in turn) and ties (the highest position is dropped,
so the lowest stays). Over time it recommends the best active arm. What the phases leave of T (at most K) is not drawn.
"""

from __future__ import annotations

import math

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.elimination_stages import BEST_ACTIVE, draw_stage
from service.simulation.kernels.traffic import MEANS, World, open_book, open_post


@compiled
def olog(arms: int) -> float:
    """1/2 + sum_{i=2..K} 1/i."""
    total = 0.5
    for i in range(2, arms + 1):
        total += 1.0 / i
    return total


@compiled
def drop_worst(means: Floats, active: Ints) -> None:
    """The active arm with the smallest mean leaves; among equals the highest position."""
    worst = -1
    for i in range(len(active)):
        if active[i] and (worst < 0 or not means[i] > means[worst]):
            worst = i
    active[worst] = 0


@compiled
def rejects_epoch(
    world: World,
    book: Floats,
    post: Floats,
    trace: Ints,
    budget: int,
    time: int,
    stop: int,
    checkpoints: Ints,
    picks: Ints,
    shown: int,
    standing: int,
    rng: np.random.Generator,
) -> tuple[int, int, int]:
    """A whole SR with this budget from draw number `time`, cut at `stop`: (time after it, checkpoints shown, winner or -1)."""
    arms = book.shape[1]
    active = np.ones(arms, np.int64)
    drawn = 0
    for phase in range(1, arms):
        wanted = math.ceil((budget - arms) / (olog(arms) * (arms + 1 - phase)))
        time, shown, finished = draw_stage(
            world,
            book,
            post,
            trace,
            active,
            wanted - drawn,
            time,
            stop,
            checkpoints,
            picks,
            shown,
            standing,
            rng,
        )
        if not finished:
            return time, shown, -1
        drawn = wanted
        drop_worst(book[MEANS], active)
    return time, shown, int(np.argmax(active))


@compiled
def play(
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
) -> None:
    """One run: the recommendation at every checkpoint goes into `picks`."""
    book, post = open_book(truth), open_post(world)
    _, shown, winner = rejects_epoch(world, book, post, trace, budget, 0, budget, checkpoints, picks, 0, BEST_ACTIVE, rng)
    picks[min(shown, len(picks) - 1) :] = winner
