"""Uniform: every arm in turn; recommends the best empirical mean. Anytime; nothing is left open."""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.algorithms.compiled import compiled
from service.simulation.algorithms.traffic import MEANS, World, best_of, is_due, open_book, open_post, pull


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
    shown = 0
    for time in range(budget):
        pull(world, book, post, trace, time % len(truth), time, rng)
        if is_due(checkpoints, shown, time + 1):
            picks[shown] = best_of(book[MEANS])
            shown += 1
