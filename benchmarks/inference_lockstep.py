"""Many runs side by side: every step draws one arm in each run, by the service's policies, and updates the arms' moments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numba import njit

from benchmarks.inference_baselines import BASELINES, Baselines
from benchmarks.inference_instances import Floats, Instance, Ints
from service.inference.samples import Samples
from service.policy.automatic import AutomaticPolicy
from service.policy.base import SCORE_TIE
from service.policy.weights import PAPER, WeightRule

PolicyName: TypeAlias = Literal[
    "simple_tracking",
    "almost_tracking",
    "uniform",
    "ts_tc",
    "eb_tc",
    "eb_tc_eps0",
    "ts_tc:binary",
    "eb_tc:binary",
    "eb_tc_eps0:binary",
]
# What `auto` becomes; the same for every kind of rewards and number of arms.
AUTOMATIC = AutomaticPolicy(0).resolved("binary", 10)


@dataclass(frozen=True, slots=True)
class Player:
    """A policy with its weights, and the name that results have for both."""

    name: str
    policy: PolicyName
    rule: WeightRule = PAPER


DEFAULT = Player("default", "simple_tracking", WeightRule(AUTOMATIC.sharpness, AUTOMATIC.guard, AUTOMATIC.ties))
UNIFORM = Player("uniform", "uniform")
# The paper's policies to the letter, whose names are theirs.
PAPERS = (Player("simple_tracking", "simple_tracking"), Player("almost_tracking", "almost_tracking"))
PLAYERS = (DEFAULT, *PAPERS, UNIFORM)


@dataclass
class Runs:
    """Moments of every arm in every run, one row a run."""

    instance: Instance
    count: int
    counts: Ints = field(init=False)
    means: Floats = field(init=False)
    squares: Floats = field(init=False)

    def __post_init__(self) -> None:
        shape = (self.count, len(self.instance.means))
        self.counts, self.means, self.squares = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)

    def add(self, arms: Ints, rewards: Floats) -> None:
        """One reward for one arm of each run (Welford's update; shares of successes stay exact, so that ties are ties)."""
        rows = np.arange(self.count)
        self.counts[rows, arms] += 1
        counts, before = self.counts[rows, arms], self.means[rows, arms]
        after = before + (rewards - before) / counts
        if self.instance.reward.kind == "binary":
            after = np.rint(counts * after) / counts
        self.means[rows, arms] = after
        self.squares[rows, arms] += (rewards - before) * (rewards - after)

    def samples(self, rows: Ints, arms: Ints) -> Samples:
        """What the inference sees of one arm in each of these runs."""
        return Samples(self.counts[rows, arms].astype(np.float64), self.means[rows, arms], self.squares[rows, arms])

    def leaders(self) -> Ints:
        """The recommendation of each run: the best mean, ties to more rewards, then to the lower position."""
        known = np.where(self.counts > 0, self.means, -np.inf)
        tied = known >= known.max(axis=1, keepdims=True)
        best: Ints = np.argmax(np.where(tied, self.counts, -1), axis=1)
        return best


def h1_weights_of_rows(means: Floats, rule: WeightRule = DEFAULT.rule) -> Floats:
    """The policy's weights for every run at once: `service.policy.weights.h1_weights` of each row, compiled."""
    # By the limit each tied best arm after the second costs a quarter more; 0 stands for the paper's rule.
    found: Floats = _weights_of_rows(means, rule.sharpness, rule.guard, 0.25 if rule.ties == "limit" else 0.0)
    return found


@njit(cache=True)
def _weights_of_rows(means: Floats, sharpness: float, guard: float, by_limit: float) -> Floats:
    runs, arms = means.shape
    weights, powers = np.empty_like(means), np.empty(arms)
    for run in range(runs):
        best, tied = -np.inf, 0
        for arm in range(arms):
            best = max(best, means[run, arm])
        cheapest = np.inf
        for arm in range(arms):
            gap, cost = best - means[run, arm], -0.25
            tied += gap == 0.0
            for other in range(arms):
                ratio = gap / (gap + (best - means[run, other])) if gap > 0.0 else np.inf
                cost += ratio * ratio
            weights[run, arm] = cost
            cheapest = min(cheapest, cost)
        of_best = 1.0 + by_limit * (tied - 2) if by_limit > 0.0 and tied > 1 else cheapest
        total = sharp = 0.0
        for arm in range(arms):
            cost = of_best if means[run, arm] == best else weights[run, arm]
            weights[run, arm] = 1.0 if np.isinf(cheapest) else 1.0 / cost
            powers[arm] = weights[run, arm] ** sharpness
            total += weights[run, arm]
            sharp += powers[arm]
        for arm in range(arms):
            plain = weights[run, arm] / total
            weights[run, arm] = plain if sharpness == 1.0 else guard * plain + (1.0 - guard) * (powers[arm] / sharp)
    return weights


def play(
    instance: Instance, player: Player, runs: int, draws: int, seed: int, *, as_served: bool = False
) -> Iterator[tuple[Runs, Ints]]:
    """After every reward: the state of all runs and the arm that each just drew."""
    rng = np.random.default_rng(seed)
    state = Runs(instance, runs)
    planner: Batches | Baselines | None = None
    if player.policy == "almost_tracking":
        planner = Batches(runs, len(instance.means), player.rule, seed, as_served=as_served)
    elif player.policy in BASELINES:
        planner = Baselines(player.policy, runs, len(instance.means), np.random.default_rng([seed, 2]))
    for step in range(draws):
        if planner is not None:
            arms = planner.next_arms(state)
        elif player.policy == "uniform" or step < len(instance.means):
            arms = np.full(runs, step % len(instance.means))
        else:
            scores = h1_weights_of_rows(state.means, player.rule) - state.counts / step
            arms = np.argmax(scores >= scores.max(axis=1, keepdims=True) - SCORE_TIE, axis=1)
        state.add(arms, instance.draw(rng, arms))
        yield state, arms


class Batches:
    """Almost Tracking in every run, batch by batch: all batches end at the same step because each holds 2K draws.

    The arithmetic of `service.policy.almost_tracking` for all runs at once. A test compares it with the policy draw for draw.
    """

    def __init__(self, runs: int, arms: int, rule: WeightRule, seed: int, *, as_served: bool) -> None:
        self.rule = rule
        self.seeds = seed * runs + np.arange(runs)
        self.rng = np.random.default_rng([seed, 1])
        self.as_served = as_served
        self.size = 2 * arms
        self.batch = 0
        self.weight_sums = np.zeros((runs, arms))
        self.queue: list[Ints] = []

    def next_arms(self, state: Runs) -> Ints:
        """The next planned arm of each run."""
        if not self.queue:
            self.queue = list(passes_over(self._plan(state), self.size).T[::-1])
        return self.queue.pop()

    def _plan(self, state: Runs) -> Ints:
        """How often each arm is drawn in the next batch of each run."""
        self.batch += 1
        if self.batch == 1:
            self.weight_sums += 1.0 / state.means.shape[1]
            return np.full(state.means.shape, 2, np.int64)
        targets = h1_weights_of_rows(state.means, self.rule)
        insufficient = self.weight_sums / (self.batch - 1) <= targets / 0.999 + 1e-9
        chosen = np.where(insufficient, targets, 0.0)
        weights = chosen / chosen.sum(axis=1, keepdims=True)
        self.weight_sums += weights
        positive = weights > 0.0
        spread = self.size - positive.sum(axis=1, keepdims=True)
        counts = np.where(positive, 1 + np.floor(weights * spread + 1e-9), 0).astype(np.int64)
        cumulated = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        cumulated /= cumulated[:, -1:]
        missing = self.size - counts.sum(axis=1)
        chances = self._chances(missing)
        for extra in range(int(missing.max())):
            runs = np.flatnonzero(missing > extra)
            arms = (cumulated[runs] <= chances[runs, extra, None]).sum(axis=1)
            counts[runs, arms] += 1
        return counts

    def _chances(self, missing: Ints) -> Floats:
        """Uniform numbers for the remainders: from one generator, or as the service would draw them (slow, for comparison)."""
        most = int(missing.max())
        if not self.as_served:
            return self.rng.random((len(missing), most))
        chances = np.zeros((len(missing), most))
        for run in np.flatnonzero(missing > 0):
            own = np.random.default_rng([int(self.seeds[run]), self.batch])
            chances[run, : missing[run]] = own.random(missing[run])
        return chances


def passes_over(planned: Ints, size: int) -> Ints:
    """The order of hand-out in every run: passes over the positions, each arm with draws left once per pass."""
    order = np.empty((len(planned), size), np.int64)
    filled = np.zeros(len(planned), np.int64)
    for nth in range(int(planned.max())):
        left = planned > nth
        runs, arms = np.nonzero(left)
        place = filled[runs] + np.cumsum(left, axis=1)[runs, arms] - 1
        order[runs, place] = arms
        filled += left.sum(axis=1)
    return order
