"""Simple Tracking under live traffic, compiled: one run of an experiment whose rewards are late, lost or silent.

The loop follows service/policy/simple_tracking.py draw for draw (tests/live/test_traffic_kernel.py holds it to that) and
exists only because a study needs hundreds of millions of draws. Rewards are multiples of 2^-20, so that sums of doubles are
exact here as the service's integers are.

A draw made at ask s (from 0) with lateness d is told before ask s + 1 + d: lateness 0 is the paper's synchronous loop.
Lateness -1 is silence.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from service.inference.samples import Bools, Floats, Ints

GRID = 2.0**20
SCORE_TIE = 1e-9
SILENT = -1
# What silence means after the window.
WAIT, DROP, ZERO = 0, 1, 2
# Costs are exchanged for so few moved arms, and summed anew after so many exchanges, that rounding stays far below 1e-11.
MOVES_EXCHANGED = 4
REFRESHED_AFTER = 64
# Flags under which the compiled sums stay within 1e-15 of the plain ones.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, error_model="numpy", fastmath=_FLAGS)
def _cost(own: float, gaps: Floats, count: int) -> float:
    total = 0.0
    for j in range(count):
        ratio = own / (own + gaps[j])
        total += ratio * ratio
    return total - 0.25


@njit(cache=True, error_model="numpy", fastmath=_FLAGS)
def _replace_gap(gaps: Floats, costs: Floats, count: int, index: int, gap: float) -> None:
    """One challenger's mean moved: its part in every other cost is exchanged, its own cost summed anew."""
    old = gaps[index]
    for i in range(count):
        own = gaps[i]
        if own > 0.0:
            was, now = own / (own + old), own / (own + gap)
            costs[i] += (now - was) * (now + was)
    gaps[index] = gap
    costs[index] = _cost(gap, gaps, count)


@njit(cache=True, error_model="numpy")
def _all_costs(  # noqa: PLR0917 - compiled functions know no keywords
    sums: Floats, counts: Ints, members: Ints, known: Ints, gaps: Floats, costs: Floats
) -> tuple[int, float]:
    """Gaps and costs of the members with a reward; how many there are, and the best mean."""
    found, best = 0, -np.inf
    for index in range(len(members)):
        arm = members[index]
        if counts[arm] > 0:
            known[found] = index
            gaps[found] = sums[arm] / counts[arm]
            best = max(best, gaps[found])
            found += 1
    for index in range(found):
        gaps[index] = best - gaps[index]
    for index in range(found):
        costs[index] = _cost(gaps[index], gaps, found) if gaps[index] > 0.0 else 0.0
    return found, best


@njit(cache=True, error_model="numpy")
def _targets(  # noqa: PLR0917 - compiled: no structs
    known: Ints, gaps: Floats, costs: Floats, found: int, arms: int, targets: Floats
) -> None:
    """The target share of each member, as it is live: 1/K without a reward, the H1 weights of the others times their part."""
    for index in range(arms):
        targets[index] = 1.0 / arms
    cheapest = np.inf
    for index in range(found):
        if gaps[index] > 0.0:
            cheapest = min(cheapest, costs[index])
    if not np.isfinite(cheapest):
        return
    total = 0.0
    for index in range(found):
        total += 1.0 / (costs[index] if gaps[index] > 0.0 else cheapest)
    for index in range(found):
        weight = 1.0 / (costs[index] if gaps[index] > 0.0 else cheapest)
        targets[known[index]] = weight / total * (found / arms)


@njit(cache=True, error_model="numpy")
def _leader(sums: Floats, counts: Ints, observed: Ints, active: Bools) -> int:
    best = -1
    best_mean = 0.0
    for arm in range(len(sums)):
        if not active[arm] or observed[arm] == 0:
            continue
        mean = sums[arm] / counts[arm]
        if best < 0 or mean > best_mean or (mean == best_mean and observed[arm] > observed[best]):
            best, best_mean = arm, mean
    return best


@njit(cache=True, error_model="numpy")
def simulate(  # noqa: C901, PLR0912, PLR0915, PLR0917 - one loop, compiled
    rewards_of: Floats,
    chance: Floats,
    lateness: Ints,
    binary: bool,  # noqa: FBT001 - compiled: no keywords
    silence: int,
    window: int,
    impute: bool,  # noqa: FBT001 - compiled: no keywords
    count_pending: bool,  # noqa: FBT001 - compiled: no keywords
    epochs: bool,  # noqa: FBT001 - compiled: no keywords
    changes: Ints,
    active_at_start: Bools,
    looks: Ints,
    flooded_after: int,
) -> tuple[NDArray[np.int16], Ints, int, bool]:
    """One run: (arm of each draw, recommendation at each look and once all is told, draws with an arm above twice its target).

    `rewards_of` are the means (or conversion rates), `chance` one number per draw (Gaussian noise, or uniform), `changes`
    rows of (ask, arm, 1 = enable | 0 = disable), sorted. With `binary` a zero is silence when `silence` is ZERO.
    """
    horizon, arms = len(chance), len(rewards_of)
    active = active_at_start.copy()
    members = np.flatnonzero(active)
    sums, counts = np.zeros(arms), np.zeros(arms, np.int64)
    observed, pending = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    tracked = np.zeros(arms, np.int64)
    drawn, reward = np.empty(horizon, np.int16), np.zeros(horizon)
    epoch_of, told = np.zeros(horizon, np.int32), np.zeros(horizon, np.bool_)
    first_due, next_due = np.full(horizon + 1, -1, np.int64), np.full(horizon, -1, np.int64)
    targets, gaps, costs = np.empty(arms), np.empty(arms), np.empty(arms)
    known, moved = np.empty(arms, np.int64), np.empty(arms, np.int64)
    found, best, moves, exchanged = 0, 0.0, 0, 0
    leaders = np.full(len(looks) + 1, -1, np.int64)
    stale, epoch, change, look, flooded, flooded_at_end = True, 0, 0, 0, 0, False

    for ask in range(horizon + 1):
        draw = first_due[ask]
        while draw >= 0:
            arm = drawn[draw]
            told[draw] = True
            sums[arm] += reward[draw]
            if not impute:
                counts[arm] += 1
            observed[arm] += 1
            pending[arm] -= 1
            if not count_pending:
                tracked[arm] += 1
            if moves < arms:
                moved[moves] = arm
            moves += 1
            draw = next_due[draw]
        silent = ask - 1 - window
        if window > 0 and silent >= 0 and not told[silent]:
            arm = drawn[silent]
            pending[arm] -= 1
            if silence == DROP:
                if count_pending and epoch_of[silent] == epoch:
                    tracked[arm] -= 1
            else:
                observed[arm] += 1
                if not impute:
                    counts[arm] += 1
                    if moves < arms:
                        moved[moves] = arm
                    moves += 1
                if not count_pending:
                    tracked[arm] += 1
        while change < len(changes) and changes[change, 0] == ask:
            active[changes[change, 1]] = changes[change, 2] == 1
            members = np.flatnonzero(active)
            stale = True
            change += 1
            if epochs:
                epoch += 1
                tracked[:] = 0
        if look < len(looks) and looks[look] == ask:
            leaders[look] = _leader(sums, counts, observed, active)
            look += 1
        size = len(members)
        if moves and not stale and found == arms and size == arms and moves <= MOVES_EXCHANGED and exchanged < REFRESHED_AFTER:
            for move in range(moves):
                arm = moved[move]
                gap = best - sums[arm] / counts[arm]
                if gaps[arm] <= 0.0 or gap <= 0.0:
                    stale = True
                    break
                _replace_gap(gaps, costs, arms, arm, gap)
                exchanged += 1
            if not stale:
                _targets(known, gaps, costs, found, size, targets)
        elif moves:
            stale = True
        moves = 0
        if stale:
            found, best = _all_costs(sums, counts, members, known, gaps, costs)
            _targets(known, gaps, costs, found, size, targets)
            stale, exchanged = False, 0
        total = 0
        for index in range(size):
            total += tracked[members[index]]
        if ask > flooded_after and total > 0:
            above = False
            for index in range(size):
                if tracked[members[index]] > 2.0 * targets[index] * total:
                    above = True
            flooded += above
            flooded_at_end = above
        if ask == horizon:
            break

        chosen = -1
        for index in range(size):
            if observed[members[index]] + pending[members[index]] == 0:
                chosen = members[index]
                break
        if chosen < 0:
            largest = -np.inf
            for index in range(size):
                score = targets[index] - (tracked[members[index]] / total if total else 0.0)
                largest = max(largest, score)
            for index in range(size):
                score = targets[index] - (tracked[members[index]] / total if total else 0.0)
                if score >= largest - SCORE_TIE:
                    chosen = members[index]
                    break

        drawn[ask] = chosen
        epoch_of[ask] = epoch
        late = lateness[ask]
        if binary:
            reward[ask] = 1.0 if chance[ask] < rewards_of[chosen] else 0.0
            if silence == ZERO and reward[ask] == 0.0:
                late = SILENT
        else:
            reward[ask] = np.rint((rewards_of[chosen] + chance[ask]) * GRID) / GRID
        pending[chosen] += 1
        if count_pending:
            tracked[chosen] += 1
        if impute:
            counts[chosen] += 1
            if moves < arms:
                moved[moves] = chosen
            moves += 1
        due = ask + 1 + late
        if late >= 0 and due <= horizon:
            next_due[ask] = first_due[due]
            first_due[due] = ask

    # Once everything that will ever be told has been told.
    for draw in range(horizon):
        if told[draw] or (lateness[draw] < 0 and not impute):
            continue
        if silence == DROP and window > 0 and draw + 1 + window <= horizon:
            continue
        sums[drawn[draw]] += reward[draw]
        if not impute:
            counts[drawn[draw]] += 1
        observed[drawn[draw]] += 1
    leaders[len(looks)] = _leader(sums, counts, observed, active)
    return drawn, leaders, flooded, flooded_at_end
