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
from service.simulation.algorithms.allocation import (
    REFRESH,
    compute,
    fill_sums,
    finish,
    largest,
    move,
    sharpen,
    targets_from_means,
    total_of,
)
from service.simulation.algorithms.compiled import compiled
from service.simulation.algorithms.traffic import (
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


@compiled
def direct_weights(means: Floats, sharpness: float) -> Floats:
    """The weights by the sum of ratios, as service/policy/weights.py writes it; loops, because they compile faster."""
    arms = len(means)
    top = largest(means)
    weights = np.zeros(arms)
    share = 0.0
    for i in range(arms):
        own = top - means[i]
        if own > 0.0:
            cost = -0.25
            for j in range(arms):
                ratio = own / (own + (top - means[j]))
                cost += ratio * ratio
            weights[i] = (1.0 / cost) ** sharpness
            share = max(share, weights[i])
    for i in range(arms):
        if means[i] == top:
            weights[i] = share if share > 0.0 else 1.0
    total = total_of(weights)
    for i in range(arms):
        weights[i] /= total
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


@compiled
def decide(weights: Floats, draws: Floats, drawn: int, scores: Floats) -> int:
    """The tie rule applied to weights that are not normalised; -1 where they cannot decide.

    Scores are taken times `drawn`, which saves dividing every count. The lowest score in reach of the largest settles it: if it
    is safely tied it wins whatever comes behind it.
    """
    scale = drawn / total_of(weights)
    top = -np.inf
    for i in range(len(weights)):
        score = weights[i] * scale - draws[i]
        scores[i] = score
        if score > top:  # noqa: PLR1730 - compiles to a faster loop than max()
            top = score
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
) -> None:
    """One run with late or lost rewards, where any number of means may move between two draws."""
    book, post = open_book(truth), open_post(world)
    means, draws = book[MEANS], book[DRAWS]
    shown = 0
    for time in range(budget):
        arm = time
        if time >= len(truth):
            arm = decide_directly(targets_from_means(means, sharpness), draws, time)
        pull(world, book, post, trace, arm, time, rng)
        if is_due(checkpoints, shown, time + 1):
            picks[shown] = best_of(means)
            shown += 1


@compiled
def _play_fast(  # noqa: C901, PLR0912, PLR0915 - written out, because each call in this loop costs as much as a tenth of it
    truth: Floats, budget: int, checkpoints: Ints, picks: Ints, trace: Ints, rng: np.random.Generator
) -> None:
    """One run with Gaussian rewards at once and s = 1: `compute`, `move`, `finish` and `decide` in one loop.

    `squares` holds gap^2, infinite for the best arm, whose weight then comes out as 0 until it gets the largest of the others.
    Means of Gaussian rewards do not tie; should the best ones ever do, the direct formula decides.
    """
    arms = len(truth)
    draws, reward_sums, means = np.zeros(arms), np.zeros(arms), np.full(arms, np.nan)
    gaps, squares, sums = np.zeros(arms), np.zeros(arms), np.zeros(arms)
    weights, scores = np.zeros(arms), np.zeros(arms)
    top, best, tied = 0.0, 0, 0
    left = shown = 0
    due = checkpoints[0]
    for time in range(budget):
        arm = time
        if time >= arms:
            if left == 0:
                top = means[0]
                for i in range(1, arms):
                    if means[i] > top:  # noqa: PLR1730 - compiles to a faster loop than max()
                        top = means[i]
                tied = 0
                for i in range(arms):
                    gaps[i] = top - means[i]
                    squares[i] = gaps[i] * gaps[i]
                    if gaps[i] == 0.0:
                        best = i
                        tied += 1
                squares[best] = np.inf
                fill_sums(gaps, sums)
                for i in range(arms):
                    weights[i] = 1.0 / (squares[i] * sums[i])
                left = REFRESH
            share = weights[0]
            for i in range(1, arms):
                if weights[i] > share:  # noqa: PLR1730 - see above
                    share = weights[i]
            weights[best] = share
            total = 0.0
            for i in range(arms):
                total += weights[i]
            scale = time / total
            largest_score = -np.inf
            for i in range(arms):
                score = weights[i] * scale - draws[i]
                scores[i] = score
                if score > largest_score:  # noqa: PLR1730 - see above
                    largest_score = score
            arm = 0
            while scores[arm] < largest_score - 1.1 * SCORE_TIE * time:
                arm += 1
            if tied > 1 or scores[arm] < largest_score - 0.9 * SCORE_TIE * time:
                arm = decide_directly(direct_weights(means, 1.0), draws, time)
        draws[arm] += 1.0
        reward_sums[arm] += truth[arm] + rng.standard_normal()
        means[arm] = reward_sums[arm] / draws[arm]
        if left > 0:
            left -= 1
            if arm == best or tied > 1 or means[arm] >= top:
                left = 0
            elif left > 0:
                old, new = gaps[arm], top - means[arm]
                closer, own = old - new, 0.0
                for i in range(arms):
                    before, after = gaps[i] + old, gaps[i] + new
                    inverse = 1.0 / (before * after)
                    moved = sums[i] + closer * (before + after) * inverse * inverse
                    sums[i] = moved
                    weights[i] = 1.0 / (squares[i] * moved)
                    own += (before * inverse) * (before * inverse)
                itself = 1.0 / (old + new)
                gaps[arm], squares[arm] = new, new * new
                sums[arm] = own - itself * itself
                weights[arm] = 1.0 / (squares[arm] * sums[arm])
        if len(trace) > 0:
            trace[time] = arm
        if time + 1 == due:
            picks[shown] = best_of(means)
            shown += 1
            due = checkpoints[shown] if shown < len(checkpoints) else -1


@compiled
def play(  # noqa: C901, PLR0912 - the loop for all other cases; every call in it would cost
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    sharpness: float,
) -> None:
    """One run: the recommendation at every checkpoint goes into `picks`."""
    if is_live(world):
        _play_live(truth, world, budget, checkpoints, picks, trace, rng, sharpness)
        return
    if world.kind == GAUSSIAN and sharpness == 1.0:
        _play_fast(truth, budget, checkpoints, picks, trace, rng)
        return
    arms = len(truth)
    draws, reward_sums, means = np.zeros(arms), np.zeros(arms), np.full(arms, np.nan)
    gaps, sums, weights, sharp = np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms)
    scores, bests = np.zeros(arms), np.zeros(arms, np.int64)
    top, size = 0.0, 0
    left = shown = 0
    due = checkpoints[0]
    for time in range(budget):
        arm = time
        if time >= arms:
            if left == 0:
                top, size = compute(means, gaps, sums, weights, bests)
                left = REFRESH
            finish(weights, bests, size)
            if sharpness == 1.0:
                arm = decide(weights, draws, time, scores)
            else:
                sharpen(weights, sharpness, sharp)
                arm = decide(sharp, draws, time, scores)
            if arm < 0:
                arm = decide_directly(direct_weights(means, sharpness), draws, time)
        draws[arm] += 1.0
        reward_sums[arm] += truth[arm] + rng.standard_normal() if world.plain else reward_of(world, truth[arm], rng)
        means[arm] = reward_sums[arm] / draws[arm]
        if left > 0:
            left -= 1
            if gaps[arm] == 0.0 or means[arm] >= top:
                left = 0
            elif left > 0:
                move(gaps, sums, weights, arm, top - means[arm])
        if len(trace) > 0:
            trace[time] = arm
        if time + 1 == due:
            picks[shown] = best_of(means)
            shown += 1
            due = checkpoints[shown] if shown < len(checkpoints) else -1
