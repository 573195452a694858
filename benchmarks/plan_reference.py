"""Experiments played draw by draw to the verdict: the service's policy, compiled, with floors and late rewards, and its tests.

What `bestarm plan` is held against. The choice is that of `service/policy`, draw for draw (a test compares them): an arm that is
a whole draw behind its floor, an arm that was never drawn, else the arm furthest below its target. Looks are a hundredth apart,
as those of the service are. Nothing of the step-by-step simulation in `service/simulation/verdict_runs.py` is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from service.inference.levels import pair_levels
from service.inference.pairs import evidence
from service.inference.samples import Bools, Floats, Ints, Samples
from service.policy.base import SCORE_TIE
from service.simulation.kernels.weights_kernel import targets_from_means
from service.simulation.prospect import Prospect

_LOOKS = 1.01
_BINARY, _REAL, _BOUNDED = 0, 1, 2
_KINDS = {"binary": _BINARY, "real": _REAL, "bounded": _BOUNDED}


class Rules(NamedTuple):
    """A prospect as the compiled loop reads it."""

    kind: int
    truth: Floats
    deviation: float
    low: float
    width: float
    sign: float
    floors: Floats
    sharpness: float
    guard: float
    limit: bool
    uniform: bool
    delay: int
    """A reward is told after so many more draws."""
    lag: int
    """And counts in the verdict after so many, not before it is told."""
    silence: float
    """What a draw counts for the policy until it is told; NaN: nothing."""


class State(NamedTuple):
    """All runs, one row each."""

    drawn: Ints
    """A ring of the arms of the last draws."""
    values: Floats
    """And of their rewards."""
    draws: Ints
    told: Ints
    sums: Floats
    counts: Ints
    means: Floats
    squares: Floats


def rules_of(prospect: Prospect) -> Rules:
    """Of Simple Tracking or equal shares."""
    policy, reward = prospect.policy, prospect.reward
    low, high = float(reward.minimum or 0.0), float(reward.maximum or 1.0)
    return Rules(
        kind=_KINDS[reward.kind],
        truth=np.array(prospect.means, np.float64),
        deviation=prospect.deviation,
        low=low,
        width=high - low,
        sign=float(reward.sign),
        floors=np.array(prospect.floors, np.float64),
        sharpness=policy.sharpness,
        guard=policy.guard,
        limit=policy.ties == "limit",
        uniform=policy.kind == "uniform",
        delay=prospect.delay,
        lag=max(prospect.delay, prospect.window or 0),
        silence=np.nan if prospect.silence is None else prospect.silence,
    )


def new_state(runs: int, arms: int, lag: int) -> State:
    """Before the first draw."""
    shape, ring = (runs, arms), (runs, lag + 2)
    return State(
        np.zeros(ring, np.int64),
        np.zeros(ring),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.zeros(shape),
        np.zeros(shape),
    )


@njit(cache=True)
def most_owed(draws: Ints, floors: Floats) -> int:
    """The lowest of the arms that are furthest behind their floors, if that is a draw or more; else -1."""
    owed, most, total = -1, 0.0, draws.sum()
    for arm in range(len(draws)):
        debt = floors[arm] * (total + 1.0) - draws[arm]
        if owed < 0 or debt > most:
            owed, most = arm, debt
    return owed if most >= 1.0 else -1


@njit(cache=True)
def choose(means: Floats, draws: Ints, rules: Rules) -> int:
    """The next arm; larger means are better, NaN is an arm without a reward."""
    arms, total, promised = len(draws), draws.sum(), rules.floors.sum()
    owed = most_owed(draws, rules.floors) if promised > 0.0 else -1
    if owed >= 0:
        return int(owed)
    for arm in range(arms):
        if draws[arm] == 0:
            return arm
    targets = np.full(arms, 1.0 / arms)
    if not rules.uniform:
        targets = targets_from_means(means, rules.sharpness, rules.guard, rules.limit)
    scores = np.empty(arms)
    for arm in range(arms):
        target = rules.floors[arm] + max(0.0, 1.0 - promised) * targets[arm] if promised > 0.0 else targets[arm]
        scores[arm] = target - draws[arm] / total
    top = scores.max()
    for arm in range(arms):
        if scores[arm] >= top - SCORE_TIE:
            return arm
    return 0


@njit(cache=True)
def reward_of(arm: int, rules: Rules) -> float:
    """One reward of an arm."""
    if rules.kind == _BINARY:
        return 1.0 if np.random.random() < rules.truth[arm] else 0.0  # noqa: NPY002 - numba's own generator
    if rules.kind == _REAL:
        return float(rules.truth[arm] + rules.deviation * np.random.standard_normal())  # noqa: NPY002 - as above
    centre = (rules.truth[arm] - rules.low) / rules.width
    strength = centre * (1.0 - centre) / (rules.deviation / rules.width) ** 2 - 1.0
    return float(rules.low + rules.width * np.random.beta(centre * strength, (1.0 - centre) * strength))  # noqa: NPY002 - as above


@njit(cache=True)
def advance(runs: Ints, begin: int, until: int, rules: Rules, state: State) -> None:
    """Some runs from so many draws to so many."""
    known, ring = np.empty(len(rules.truth)), state.drawn.shape[1]
    for run in runs:
        drawn, values, draws, told = state.drawn[run], state.values[run], state.draws[run], state.told[run]
        sums, counts, means, squares = state.sums[run], state.counts[run], state.means[run], state.squares[run]
        for draw in range(begin, until):
            if draw > rules.delay:
                due = (draw - 1 - rules.delay) % ring
                told[drawn[due]] += 1
                sums[drawn[due]] += values[due]
            for arm in range(len(known)):
                silent = 0.0 if np.isnan(rules.silence) else rules.silence * (draws[arm] - told[arm])
                over = told[arm] if np.isnan(rules.silence) else draws[arm]
                known[arm] = rules.sign * (sums[arm] + silent) / over if over else np.nan
            arm = choose(known, draws, rules)
            drawn[draw % ring], values[draw % ring] = arm, reward_of(arm, rules)
            draws[arm] += 1
            if draw >= rules.lag:
                ripe = (draw - rules.lag) % ring
                arm, reward = drawn[ripe], values[ripe]
                counts[arm] += 1
                before = means[arm]
                means[arm] = before + (reward - before) / counts[arm]
                squares[arm] += (reward - before) * (reward - means[arm])


@njit(cache=True)
def seed_rewards(seed: int) -> None:
    """Of the compiled loop."""
    np.random.seed(seed)  # noqa: NPY002 - numba's own generator


@dataclass(frozen=True, slots=True)
class Ends:
    """The draws until each verdict, infinite where it did not come."""

    separated: Floats
    decided: Floats


def play(prospect: Prospect, runs: int, most: int, seed: int, *, until_separated: bool = True) -> Ends:
    """All runs side by side, with a look a hundredth after the last, until every one has ended or so many draws are made."""
    seed_rewards(seed)
    arms, rules = len(prospect.means), rules_of(prospect)
    state = new_state(runs, arms, rules.lag)
    out = np.zeros((runs, arms), np.bool_)
    ends, left, now, look = Ends(np.full(runs, np.inf), np.full(runs, np.inf)), np.arange(runs), 0, 4 * arms
    while look <= most and len(left):
        advance(left, now, look, rules, state)
        samples = Samples(state.counts[left].astype(np.float64), state.means[left], state.squares[left])
        out[left], decided = looked(prospect, samples, out[left])
        separated = out[left].sum(axis=1) >= arms - 1
        ends.separated[left[separated]] = look
        ends.decided[left[(separated | decided) & np.isinf(ends.decided[left])]] = look
        left = left[~separated] if until_separated else left[~(separated | decided)]
        now, look = look, max(look + 1, int(look * _LOOKS))
    return ends


def looked(prospect: Prospect, samples: Samples, out: Bools) -> tuple[Bools, Bools]:
    """One row a run: the arms that are shown to be worse, now or before, and is nothing worthwhile left?"""
    runs, arms = out.shape
    oriented = np.where(samples.counts > 0, prospect.reward.sign * samples.means, -np.inf)
    leaders = np.repeat(oriented.argmax(axis=1), arms)
    rows, rivals = np.repeat(np.arange(runs), arms), np.tile(np.arange(arms), runs)
    own, theirs = samples.pick((rows, leaders)), samples.pick((rows, rivals))
    high, low = (own, theirs) if prospect.reward.sign > 0 else (theirs, own)
    level = pair_levels(np.zeros(arms, np.int64), np.ones(arms, np.bool_), 0, 1.0 - prospect.confidence)[1]
    levels, others = np.full(len(rows), level), leaders != rivals
    out = out | ((evidence(prospect.reward, high, low, levels) >= 1.0) & others).reshape(runs, arms)
    if prospect.worthwhile is None:
        return out, np.zeros(runs, np.bool_)
    close = (evidence(prospect.reward, high, low, levels, prospect.worthwhile) >= 1.0) | ~others
    return out, close.reshape(runs, arms).all(axis=1)
