"""Uniform: every arm in turn; recommends the best empirical mean. Anytime; nothing is left open."""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.elimination_stages import BEST_ACTIVE, draw_stage
from service.simulation.kernels.traffic import World, open_book, open_post


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
    arms = np.ones(len(truth), np.int64)
    draw_stage(world, book, post, trace, arms, budget, 0, budget, checkpoints, picks, 0, BEST_ACTIVE, rng)
