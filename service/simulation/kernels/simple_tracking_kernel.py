"""Simple Tracking [paper, Algorithms R_track and R_track_prac], compiled; the same decisions as service/policy, draw for draw.

Each arm once in position order, then the arm that maximises w_i(Q) - N_i/t. Anytime. Open in the paper: ties. Taken:
scores within 1e-9 of the largest are tied and the lowest position wins. These weights differ from the direct formula by
far less than 1e-11, so only a score between 0.9e-9 and 1.1e-9 below the largest could decide otherwise; then the direct
formula decides. Late rewards as the service does it: N counts the draws that await theirs, an arm without a reward has
the target 1/K.
"""

from __future__ import annotations

import numpy as np

from service.policy.base import SCORE_TIE, Floats, Ints
from service.simulation.kernels.compilation import compiled, inlined
from service.simulation.kernels.traffic import (
    DRAWS,
    GAUSSIAN,
    MEANS,
    World,
    best_of,
    is_due,
    is_live,
    open_book,
    open_post,
    pull,
    reward_of,
)
from service.simulation.kernels.weights_kernel import (
    REFRESH,
    give_share,
    largest,
    measure,
    move,
    nearest,
    sharpen,
    targets_from_means,
    total_of,
)

_SQUARES = 2.0


@compiled
def direct_weights(means: Floats, sharpness: float, guard: float, limit: bool) -> Floats:
    """The weights by the sum of ratios, as service/policy/weights.py writes it; loops, because they compile faster."""
    arms = len(means)
    top = largest(means)
    weights = np.zeros(arms)
    share, tied = 0.0, 0
    for i in range(arms):
        own = top - means[i]
        if own > 0.0:
            cost = -0.25
            for j in range(arms):
                ratio = own / (own + (top - means[j]))
                cost += ratio * ratio
            weights[i] = 1.0 / cost
            share = max(share, weights[i])
        else:
            tied += 1
    if limit and tied > 1:
        share = 4.0 / (tied + 2.0)
    for i in range(arms):
        if means[i] == top:
            weights[i] = share if share > 0.0 else 1.0
    plain = total_of(weights)
    powers = weights**sharpness
    sharp = total_of(powers)
    for i in range(arms):
        weights[i] = guard * (weights[i] / plain) + (1.0 - guard) * (powers[i] / sharp)
    return weights


@compiled
def decide_directly(weights: Floats, draws: Floats, drawn: int) -> int:
    """The tie rule applied to normalised weights."""
    top = -np.inf
    for i in range(len(weights)):
        top = max(top, weights[i] - draws[i] / drawn)
    arm = 0
    while weights[arm] - draws[arm] / drawn < top - SCORE_TIE:
        arm += 1
    return arm


@inlined
def score_plain(weights: Floats, total: float, draws: Floats, drawn: int, scores: Floats) -> float:
    """How far below its target each arm is, by weights with this total; the largest of them.

    Times `drawn`, which saves dividing every count.
    """
    scale = drawn / total
    for i in range(len(weights)):
        scores[i] = weights[i] * scale - draws[i]
    return largest(scores)


@inlined
def score_squared(
    weights: Floats, total: float, squared: float, guard: float, draws: Floats, drawn: int, scores: Floats
) -> float:
    """The same by guard * weights / total + (1 - guard) * squares / their total: squares need no array of their own."""
    part, rest = guard * drawn / total, (1.0 - guard) * drawn / squared
    for i in range(len(weights)):
        scores[i] = weights[i] * (part + rest * weights[i]) - draws[i]
    return largest(scores)


@inlined
def score(
    weights: Floats,
    total: float,
    squared: float,
    sharpness: float,
    guard: float,
    powers: Floats,
    draws: Floats,
    drawn: int,
    scores: Floats,
) -> float:
    """The same by any rule; the default's squares and the paper's weights have a loop of their own."""
    if sharpness == 1.0 or guard == 1.0:
        top = score_plain(weights, total, draws, drawn, scores)
    elif sharpness == _SQUARES:
        top = score_squared(weights, total, squared, guard, draws, drawn, scores)
    else:
        sharp = sharpen(weights, sharpness, powers)
        part, rest = guard * drawn / total, (1.0 - guard) * drawn / sharp
        for i in range(len(weights)):
            scores[i] = part * weights[i] + rest * powers[i] - draws[i]
        top = largest(scores)
    return top


@inlined
def lowest_tied(scores: Floats, top: float, drawn: int) -> int:
    """The tie rule; -1 where the scores cannot decide.

    The lowest score in reach of the largest settles it: if it is safely tied it wins whatever comes behind it.
    """
    reach = top - 1.1 * SCORE_TIE * drawn
    arm = 0
    while scores[arm] < reach:
        arm += 1
    return arm if scores[arm] >= top - 0.9 * SCORE_TIE * drawn else -1


@compiled
def _play_live(
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    sharpness: float,
    guard: float,
    limit: bool,
) -> None:
    """One run with late or lost rewards, where any number of means may move between two draws."""
    book, post = open_book(truth), open_post(world)
    means, draws = book[MEANS], book[DRAWS]
    shown = 0
    for time in range(budget):
        arm = time
        if time >= len(truth):
            arm = decide_directly(targets_from_means(means, sharpness, guard, limit), draws, time)
        pull(world, book, post, trace, arm, time, rng)
        if is_due(checkpoints, shown, time + 1):
            picks[shown] = best_of(means)
            shown += 1


@compiled
def play(  # noqa: C901 - every call in this loop that is not written out would cost
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    sharpness: float,
    guard: float,
    limit: bool,
) -> None:
    """One run: the recommendation at every checkpoint goes into `picks`."""
    if is_live(world):
        _play_live(truth, world, budget, checkpoints, picks, trace, rng, sharpness, guard, limit)
        return
    arms, gaussian = len(truth), world.kind == GAUSSIAN
    draws, reward_sums, means, scores = np.zeros(arms), np.zeros(arms), np.full(arms, np.nan), np.zeros(arms)
    gaps, squares, sums, weights = np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms)
    powers = np.zeros(arms)
    bests, size, runner_up, total, squared = np.zeros(arms, np.int64), 0, -1, 0.0, 0.0
    left = shown = 0
    due = checkpoints[0]
    for time in range(budget):
        arm = time
        if time >= arms:
            if left == 0:
                size, total, squared = measure(means, gaps, squares, sums, weights, bests)
                runner_up = nearest(gaps)
                left = REFRESH
            total, squared = give_share(weights, bests, size, runner_up, total, squared, limit)
            top = score(weights, total, squared, sharpness, guard, powers, draws, time, scores)
            arm = lowest_tied(scores, top, time)
            if arm < 0:
                arm = decide_directly(direct_weights(means, sharpness, guard, limit), draws, time)
        draws[arm] += 1.0
        reward_sums[arm] += truth[arm] + rng.standard_normal() if gaussian else reward_of(world, truth[arm], rng)
        means[arm] = reward_sums[arm] / draws[arm]
        if left > 0:
            old, new = gaps[arm], means[bests[0]] - means[arm]
            left = left - 1 if old > 0.0 and new > 0.0 else 0
            if left > 0:
                total, squared = move(gaps, squares, sums, weights, arm, new)
                if new < gaps[runner_up]:
                    runner_up = arm
                elif arm == runner_up and new > old:
                    runner_up = nearest(gaps)
        if len(trace) > 0:
            trace[time] = arm
        if time + 1 == due:
            picks[shown] = best_of(means)
            shown += 1
            due = checkpoints[shown] if shown < len(checkpoints) else -1
