"""Simple Tracking under live traffic, compiled: one run of an experiment whose rewards are late, lost or silent.

The loop follows service/policy/simple_tracking.py draw for draw (tests/live/test_traffic_kernel.py holds it to that) and exists only
because a study needs hundreds of millions of draws. Rewards are multiples of 2^-20, so that sums of doubles are exact here as
the service's integers are.

A draw made at ask s (from 0) with lateness d is told before ask s + 1 + d: lateness 0 is the paper's synchronous loop.
Lateness -1 is silence.
"""

from __future__ import annotations

import numpy as np
from numba import njit

GRID = 2.0**20
SCORE_TIE = 1e-9
SILENT = -1
# What silence means after the window.
WAIT, DROP, ZERO = 0, 1, 2
# Flags under which the compiled sums stay within 1e-15 of the plain ones.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, error_model="numpy", fastmath=_FLAGS)
def _costs(gaps, costs):  # noqa: ANN001, ANN202 - compiled
    count = len(gaps)
    cheapest = np.inf
    for i in range(count):
        own = gaps[i]
        if own <= 0.0:
            continue
        total = 0.0
        for j in range(count):
            ratio = own / (own + gaps[j])
            total += ratio * ratio
        costs[i] = total - 0.25
        cheapest = min(cheapest, costs[i])
    return cheapest


@njit(cache=True, error_model="numpy")
def targets_of(sums, counts, members, targets):  # noqa: ANN001, ANN201 - compiled
    """The target share of each member, by rule 2: 1/K without a reward, the H1 weights of the others times their part."""
    arms = len(members)
    known = np.empty(arms, np.int64)
    means = np.empty(arms)
    found = 0
    for index in range(arms):
        targets[index] = 1.0 / arms
        arm = members[index]
        if counts[arm] > 0:
            known[found] = index
            means[found] = sums[arm] / counts[arm]
            found += 1
    if found == 0:
        return
    best = means[:found].max()
    gaps = best - means[:found]
    costs = np.zeros(found)
    cheapest = _costs(gaps, costs)
    part = found / arms
    if not np.isfinite(cheapest):
        for index in range(found):
            targets[known[index]] = part / found
        return
    total = 0.0
    for index in range(found):
        costs[index] = 1.0 / (costs[index] if gaps[index] > 0.0 else cheapest)
        total += costs[index]
    for index in range(found):
        targets[known[index]] = costs[index] / total * part


@njit(cache=True, error_model="numpy")
def _leader(sums, counts, observed, active):  # noqa: ANN001, ANN202 - compiled
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
def simulate(  # noqa: ANN201, C901, PLR0912, PLR0915 - one loop, compiled
    rewards_of,  # noqa: ANN001
    chance,  # noqa: ANN001
    lateness,  # noqa: ANN001
    binary,  # noqa: ANN001
    silence,  # noqa: ANN001
    window,  # noqa: ANN001
    impute,  # noqa: ANN001
    count_pending,  # noqa: ANN001
    epochs,  # noqa: ANN001
    changes,  # noqa: ANN001
    active_at_start,  # noqa: ANN001
    looks,  # noqa: ANN001
    flooded_after,  # noqa: ANN001
):
    """One run: (arm of each draw, recommendation at each look and once all rewards are in, draws with an arm above twice its target).

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
    targets = np.empty(arms)
    leaders = np.full(len(looks) + 1, -1, np.int64)
    stale, epoch, change, look, flooded, flooded_at_end = True, 0, 0, 0, 0, False

    for ask in range(horizon + 1):
        draw = first_due[ask]
        while draw >= 0:
            arm = drawn[draw]
            told[draw] = True
            if impute:
                sums[arm] += reward[draw]
            else:
                sums[arm] += reward[draw]
                counts[arm] += 1
            observed[arm] += 1
            pending[arm] -= 1
            if not count_pending:
                tracked[arm] += 1
            stale = True
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
                    stale = True
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
        if stale:
            targets_of(sums, counts, members, targets)
            stale = False
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
            stale = True
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
        if impute:
            sums[drawn[draw]] += reward[draw]
        else:
            sums[drawn[draw]] += reward[draw]
            counts[drawn[draw]] += 1
        observed[drawn[draw]] += 1
    leaders[len(looks)] = _leader(sums, counts, observed, active)
    return drawn, leaders, flooded, flooded_at_end
