"""A stage of an elimination algorithm: every active arm so many times, in turn, noting the recommendation at checkpoints."""

from __future__ import annotations

import math

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.traffic import (
    DRAWS,
    MEANS,
    OBSERVED,
    SUMS,
    TRUTH,
    World,
    best_active,
    draw_for_baseline,
    is_due,
)

# Instead of a standing recommendation: the best active arm.
BEST_ACTIVE = -2


@compiled
def _draw_at_once(book: Floats, active: Ints, rounds: int, rng: np.random.Generator) -> None:
    """Every active arm so many times in a plain world: a sum of n normals is one normal, sqrt(n) times as wide."""
    for arm in range(len(active)):
        if active[arm]:
            book[DRAWS, arm] += rounds
            book[OBSERVED, arm] += rounds
            book[SUMS, arm] += rounds * book[TRUTH, arm] + math.sqrt(rounds) * rng.standard_normal()
            book[MEANS, arm] = book[SUMS, arm] / book[OBSERVED, arm]


@compiled
def _rounds_at_once(world: World, checkpoints: Ints, shown: int, stop: int, time: int, size: int, rounds: int) -> int:
    """How many of the rounds can be drawn together because no checkpoint and no stop lies inside them."""
    if not world.plain:
        return 0
    if shown < len(checkpoints):
        stop = min(stop, checkpoints[shown])
    return min(rounds, (stop - time) // size)


@compiled
def draw_stage(
    world: World,
    book: Floats,
    post: Floats,
    trace: Ints,
    active: Ints,
    rounds: int,
    time: int,
    stop: int,
    checkpoints: Ints,
    picks: Ints,
    shown: int,
    standing: int,
    rng: np.random.Generator,
) -> tuple[int, int, bool]:
    """The stage, cut at draw number `stop`: (time after it, checkpoints shown, whether it was finished)."""
    size = active.sum()
    while rounds > 0:
        together = _rounds_at_once(world, checkpoints, shown, stop, time, size, rounds)
        if together > 0:
            _draw_at_once(book, active, together, rng)
            time += together * size
            rounds -= together
            if is_due(checkpoints, shown, time):
                picks[shown] = best_active(book[MEANS], active) if standing == BEST_ACTIVE else standing
                shown += 1
            continue
        for arm in range(len(active)):
            if not active[arm]:
                continue
            if time == stop:
                return time, shown, False
            draw_for_baseline(world, book, post, trace, arm, time, rng)
            time += 1
            if is_due(checkpoints, shown, time):
                picks[shown] = best_active(book[MEANS], active) if standing == BEST_ACTIVE else standing
                shown += 1
        rounds -= 1
    return time, shown, True
