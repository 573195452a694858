"""The doubling trick that DSR and DSH share: epochs of budget T1 * 2^e, each forgetting the past."""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.algorithms import sh, sr
from service.simulation.algorithms.compiled import compiled
from service.simulation.algorithms.traffic import World, forget, open_book, open_post

# Compiled code sees functions, not modules.
_halve = sh.epoch
_reject = sr.epoch


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
            time, shown, finished = _halve(world, book, post, trace, length, time, budget, checkpoints, picks, shown, winner, rng)
        else:
            time, shown, finished = _reject(
                world, book, post, trace, length, time, budget, checkpoints, picks, shown, winner, rng
            )
        if finished >= 0:
            winner = finished
        length *= 2
    picks[len(picks) - 1] = winner
