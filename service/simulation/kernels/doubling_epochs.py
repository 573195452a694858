"""The doubling trick that DSR and DSH share: epochs of budget T1 * 2^e, each forgetting the past."""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.sequential_halving import halving_epoch
from service.simulation.kernels.successive_rejects import rejects_epoch
from service.simulation.kernels.traffic import World, forget, open_book, open_post


@compiled
def run_epochs(
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    first: int,
    halving: bool,
) -> None:
    """Epochs until the budget is spent; the winner of the last finished one stands at every checkpoint."""
    book, post = open_book(truth), open_post(world)
    time = shown = 0
    winner = -1
    length = first
    while time < budget:
        forget(book)
        if halving:
            time, shown, finished = halving_epoch(
                world, book, post, trace, length, time, budget, checkpoints, picks, shown, winner, rng
            )
        else:
            time, shown, finished = rejects_epoch(
                world, book, post, trace, length, time, budget, checkpoints, picks, shown, winner, rng
            )
        if finished >= 0:
            winner = finished
        length *= 2
    picks[len(picks) - 1] = winner
