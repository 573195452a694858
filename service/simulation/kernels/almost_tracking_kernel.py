"""Almost Tracking [paper, Algorithm R_track_almost], compiled; the same decisions as service/policy, draw for draw.

Batches of N = max(batch size, 2K) draws, split by the constant-ratio ceiling over the arms that had less than their
share. Anytime. Open in the paper: whether the sufficiency test means the planned fractions (literal, the default) or the
realised ones, draws/t (`almost_tracking:realised`); C_suf = 0.999. Inside a batch: passes over the positions, as the
service hands out.
"""

from __future__ import annotations

import math

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.traffic import (
    DRAWS,
    MEANS,
    World,
    best_of,
    is_due,
    open_book,
    open_post,
    pull,
)
from service.simulation.kernels.weights_kernel import targets_from_means, total_of

_INTEGER_SLACK = 1e-9
_SUFFICIENCY_SLACK = 1e-9


@compiled
def add_remainder(counts: Ints, weights: Floats, size: int, rng: np.random.Generator, uniforms: Floats) -> None:
    """Bring the counts up to `size` at random by weight, with the given uniforms if there are any, else the generator's.

    What `Generator.choice` does with the same uniforms: the first rung of the ladder of sums that lies above each.
    """
    missing = size - counts.sum()
    if missing <= 0:
        return
    ladder = np.cumsum(weights)
    for k in range(missing):
        uniform = uniforms[k] if len(uniforms) else rng.random()
        counts[np.searchsorted(ladder, uniform * ladder[-1], side="right")] += 1


@compiled
def split(weights: Floats, size: int, rng: np.random.Generator, uniforms: Floats) -> Ints:
    """The constant-ratio ceiling: integer counts that sum to `size`."""
    spread = size
    for i in range(len(weights)):
        spread -= weights[i] > 0.0
    counts = np.zeros(len(weights), np.int64)
    for i in range(len(weights)):
        if weights[i] > 0.0:
            counts[i] = 1 + math.floor(weights[i] * spread + _INTEGER_SLACK)
    add_remainder(counts, weights, size, rng, uniforms)
    return counts


@compiled
def batch_weights(targets: Floats, shares: Floats, sufficiency: float) -> Floats:
    """The targets restricted to the arms whose share does not exceed target / C_suf."""
    chosen = np.zeros(len(targets))
    for i in range(len(targets)):
        if shares[i] <= targets[i] / sufficiency + _SUFFICIENCY_SLACK:
            chosen[i] = targets[i]
    total = total_of(chosen)
    for i in range(len(targets)):
        chosen[i] /= total
    return chosen


@compiled
def play(
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    batch_size: int,
    sufficiency: float,
    realised: bool,
    sharpness: float,
    guard: float,
    limit: bool,
    uniforms: Floats,
) -> None:
    """One run; row b of `uniforms` (if any) splits the remainder of batch b + 1, so that a test can hand in the service's."""
    book, post = open_book(truth), open_post(world)
    arms = len(truth)
    size = max(batch_size, 2 * arms)
    planned, shares = np.zeros(arms), np.zeros(arms)
    time = batch = shown = 0
    while time < budget:
        row = uniforms[batch] if len(uniforms) else uniforms[:0].ravel()
        if batch == 0:
            weights = np.full(arms, 1.0 / arms)
            counts = np.full(arms, size // arms, np.int64)
            add_remainder(counts, weights, size, rng, row)
        else:
            for i in range(arms):
                shares[i] = book[DRAWS, i] / time if realised else planned[i] / batch
            weights = batch_weights(targets_from_means(book[MEANS], sharpness, guard, limit), shares, sufficiency)
            counts = split(weights, size, rng, row)
        for i in range(arms):
            planned[i] += weights[i]
        batch += 1
        while counts.sum() > 0 and time < budget:
            for arm in range(arms):
                if counts[arm] == 0 or time == budget:
                    continue
                counts[arm] -= 1
                pull(world, book, post, trace, arm, time, rng)
                time += 1
                if is_due(checkpoints, shown, time):
                    picks[shown] = best_of(book[MEANS])
                    shown += 1
