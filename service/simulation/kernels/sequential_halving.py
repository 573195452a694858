"""SH, Sequential Halving (Karnin, Koren, Somekh 2013). Needs T.

L = ceil(log2 K) rounds; max(1, floor(T / (|S| L))) fresh draws of every arm in S, then the best ceil(|S|/2) by this
round's means stay. Open: ties (the lowest positions stay) and the order inside a round (in turn). Over time it recommends
the best arm of the latest finished round, none before the first. The paper's figures for SH and DSH follow from no
textbook variant known to us.
"""

from __future__ import annotations

import math

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.elimination_stages import BEST_ACTIVE, draw_stage
from service.simulation.kernels.successive_rejects import drop_worst
from service.simulation.kernels.traffic import MEANS, World, best_active, forget, open_book, open_post


@compiled
def rounds_of(arms: int) -> int:
    """ceil(log2 K) in integers, because log2 of a power of two need not be one."""
    rounds = 0
    while (1 << rounds) < arms:
        rounds += 1
    return rounds


@compiled
def halving_epoch(
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
    """A whole SH with this budget from draw number `time`, cut at `stop`: (time after it, checkpoints shown, winner or -1)."""
    arms = book.shape[1]
    active = np.ones(arms, np.int64)
    size = arms
    latest = -1
    for _ in range(rounds_of(arms)):
        forget(book)
        rounds = max(1, budget // (size * rounds_of(arms)))
        shows = latest if standing == BEST_ACTIVE else standing
        time, shown, finished = draw_stage(
            world, book, post, trace, active, rounds, time, stop, checkpoints, picks, shown, shows, rng
        )
        if not finished:
            return time, shown, -1
        latest = best_active(book[MEANS], active)
        for _ in range(size - math.ceil(size / 2)):
            drop_worst(book[MEANS], active)
        size = math.ceil(size / 2)
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
    _, shown, winner = halving_epoch(world, book, post, trace, budget, 0, budget, checkpoints, picks, 0, BEST_ACTIVE, rng)
    picks[min(shown, len(picks) - 1) :] = winner
