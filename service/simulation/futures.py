"""When the verdict will be there: the experiment played on, many times, from its statistics as they are.

Each future draws the arms' true means from what the rewards so far leave possible, and goes on in steps of an eighth of the
rewards there are: the production policy's targets, the rewards of a step drawn as sums, the production test of the verdict.
Between two steps the targets stand still, which the real policy's do not; rewards come at once. So it is a forecast, and says
how far off it may be: docs/inference.md has how often it comes true.

What is possible: each arm's mean has its sampling error around the mean of its rewards, pulled towards the mean of all arms by as
much as the arms' means differ less than their errors explain (empirical Bayes), because the leader of many arms was also lucky.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain.limits import NEVER_DRAWS, NEVER_TIMES
from service.inference.levels import pair_levels
from service.inference.pairs import evidence
from service.inference.samples import Bools, Floats, Ints, Samples
from service.policy.base import Evidence
from service.policy.registry import make_policy

if TYPE_CHECKING:
    from service.domain import PolicySpec, RewardSpec

FUTURES = 64
# A step in parts of the rewards so far; after 61 of them there are a thousand times as many, and beyond that nobody waits.
_GROWTH = 1.12
_STEPS = 61
# How many sets of true means the shortfall is averaged over.
_GUESSES = 4096


@dataclass(frozen=True, slots=True)
class Situation:
    """The active arms of an experiment now, in position order, and how it goes on."""

    reward: RewardSpec
    policy: PolicySpec
    samples: Samples
    draws: Ints
    """Of this epoch."""
    floors: Floats
    levels: Floats
    """At which each arm as the leader (first axis) is tested against each rival."""
    margin: float
    """What is worthwhile; 0 where only separation is a verdict."""
    decided: bool = False
    """The verdict is there, and kept whatever the futures show."""
    out: Bools | None = None
    """The arms that were found to be worse than another one, and need not be shown to be so again."""
    control: int | None = None
    """The arm that the leader has only to beat to be taken; None where nobody asked for that."""
    control_levels: Floats | None = None
    """At which each arm is tested against it."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """How many more draws until the verdict, and what is lost by not waiting for it. None: more than anyone waits for."""

    median: int | None
    low: int | None
    high: int | None
    shortfall: float
    waits: tuple[float, ...]
    """The draws until the verdict of each future, in order; infinite where there was none."""
    never: bool = False
    """Probably: the best arms are too close for anyone to wait. Equal ones, too, have a median: some gap is always possible."""

    def probability_within(self, draws: float) -> float:
        """In how many of the futures the verdict is there after so many draws."""
        return sum(wait <= draws for wait in self.waits) / len(self.waits)


def leader_levels(added: Ints, active: Bools, alpha: float) -> Floats:
    """The levels of all pairs of active arms."""
    places = np.flatnonzero(active)
    return np.stack([pair_levels(added, active, int(leader), alpha)[places] for leader in places])


def forecast(situation: Situation, rng: np.random.Generator) -> Forecast:
    """The median and the middle 80% of the futures, and the mean shortfall of the present leader."""
    with np.errstate(all="ignore"):  # rewards may be as large as 1e100
        return _forecast(situation, rng)


def _forecast(situation: Situation, rng: np.random.Generator) -> Forecast:
    sign = situation.reward.sign
    centres, errors, variances = possible_means(situation.reward, situation.samples)
    guesses = sign * _truths(situation.reward, centres, errors, _GUESSES, rng)
    leader = int(np.argmax(np.where(situation.samples.counts > 0, sign * situation.samples.means, -np.inf)))
    shortfall = float((guesses.max(axis=1) - guesses[:, leader]).mean())
    if situation.decided:
        return Forecast(0, 0, 0, shortfall, (0.0,) * FUTURES)
    futures = _Futures(situation, _truths(situation.reward, centres, errors, FUTURES, rng), variances)
    waits = np.sort(futures.waits(rng))
    quantiles = [waits[int(np.ceil(part * FUTURES)) - 1] for part in (0.1, 0.5, 0.9)]
    low, median, high = (None if np.isinf(wait) else int(wait) for wait in quantiles)
    # Of a median that is infinite only so much is known: it is beyond all steps.
    rewards = max(float(situation.samples.counts.sum()), 1.0)
    never = min(waits[FUTURES // 2 - 1], rewards * _GROWTH**_STEPS) > max(NEVER_DRAWS, NEVER_TIMES * rewards)
    return Forecast(median, low, high, shortfall, tuple(waits.tolist()), bool(never))


def possible_means(reward: RewardSpec, samples: Samples) -> tuple[Floats, Floats, Floats]:
    """Of each arm: where its mean probably is, the standard error of that, and the variance of its rewards."""
    counts, means, squares = samples
    rewards = float(counts.sum())
    overall = float((counts * means).sum()) / rewards
    if reward.kind == "binary":
        shares = (counts * means + overall) / (counts + 1.0)
        variances = np.maximum(shares * (1.0 - shares), 0.25 / (rewards + 1.0))
    else:
        pooled = float(squares.sum() + (counts * (means - overall) ** 2).sum()) / max(rewards - 1.0, 1.0)
        # The pooled variance counts as one more reward: arms with one or two rewards have none of their own.
        variances = (squares + pooled) / np.maximum(counts, 1.0)
    known = counts > 0
    sampling = variances / np.maximum(counts, 1.0)
    differing = _differing_variance(means[known], sampling[known])
    weights = np.where(known, differing / np.maximum(differing + sampling, 1e-300), 0.0)
    centre = float(np.average(means[known], weights=1.0 / np.maximum(differing + sampling[known], 1e-300)))
    centres = centre + weights * (means - centre)
    errors = np.sqrt(np.where(known, weights * sampling, differing))
    return centres, errors, variances


def _differing_variance(means: Floats, sampling: Floats) -> float:
    """How much the true means vary: what the sampling errors leave unexplained, but not less than the least of them.

    Two or three arms can be much closer by chance than such means usually are: their spread is trusted less than that of many.
    """
    arms = len(means)
    spread = float(means.var(ddof=1)) * (1.0 + 2.0 / (arms - 1) ** 2) if arms > 1 else 0.0
    return max(spread - float(sampling.mean()), float(sampling.min()), 1e-300)


def _truths(reward: RewardSpec, centres: Floats, errors: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Sets of true means, one row each."""
    truths: Floats = centres + errors * rng.standard_normal((count, len(centres)))
    if reward.kind == "real":
        return truths
    low, high = (0.0, 1.0) if reward.kind == "binary" else (float(reward.minimum or 0.0), float(reward.maximum or 0.0))
    return np.clip(truths, low, high)


class _Futures:
    """All futures side by side, one row each; those that have a verdict leave."""

    def __init__(self, situation: Situation, truths: Floats, variances: Floats) -> None:
        self._situation, self._truths, self._variances = situation, truths, variances
        self._policy = make_policy(situation.policy)
        runs = len(truths)
        self._counts, self._means, self._squares = (np.tile(each, (runs, 1)) for each in situation.samples)
        self._draws = np.tile(situation.draws.astype(np.float64), (runs, 1))
        self._rows = np.arange(runs)

    def waits(self, rng: np.random.Generator) -> Floats:
        """The draws until the verdict of each future; infinite where there was none."""
        waits = np.full(len(self._rows), np.inf)
        drawn, rewards = 0.0, max(float(self._situation.samples.counts.sum()), 1.0)
        self._leave(self._verdicts(), waits, 0.0)
        for _ in range(_STEPS):
            if len(self._rows) == 0:
                break
            step = max(np.ceil((_GROWTH - 1.0) * rewards), float(self._means.shape[1]))
            self._play(step, rng)
            # Somewhere in this step: its middle, in the geometric sense, is the fairest guess.
            halfway = np.sqrt(rewards * (rewards + step)) - rewards
            self._leave(self._verdicts(), waits, np.ceil(drawn + halfway))
            drawn, rewards = drawn + step, rewards + step
        return waits

    def _leave(self, verdicts: Bools, waits: Floats, wait: float) -> None:
        waits[self._rows[verdicts]] = wait
        keep = ~verdicts
        self._rows, self._truths = self._rows[keep], self._truths[keep]
        self._counts, self._means, self._squares = self._counts[keep], self._means[keep], self._squares[keep]
        self._draws = self._draws[keep]

    def _play(self, step: float, rng: np.random.Generator) -> None:
        """So many draws by the policy's targets, with their rewards."""
        missing = np.maximum(self._targets() * (self._draws.sum(axis=1, keepdims=True) + step) - self._draws, 0.0)
        share = missing * (step / np.maximum(missing.sum(axis=1, keepdims=True), 1e-300))
        new = np.floor(share + rng.random(share.shape))
        self._draws += new
        sums = self._sums_of(new, rng)
        counts = self._counts + new
        shift = np.where(new > 0, sums / np.maximum(new, 1.0), self._means) - self._means
        self._squares += new * self._variances + shift * shift * self._counts * new / np.maximum(counts, 1.0)
        self._means += shift * new / np.maximum(counts, 1.0)
        self._counts = counts

    def _sums_of(self, new: Floats, rng: np.random.Generator) -> Floats:
        if self._situation.reward.kind == "binary":
            return rng.binomial(new.astype(np.int64), self._truths).astype(np.float64)
        sums: Floats = new * self._truths + np.sqrt(new * self._variances) * rng.standard_normal(new.shape)
        if self._situation.reward.kind == "bounded":
            low, high = self._situation.reward.minimum or 0.0, self._situation.reward.maximum or 0.0
            return np.clip(sums, new * low, new * high)
        return sums

    def _targets(self) -> Floats:
        sign, floors = self._situation.reward.sign, self._situation.floors
        means = sign * np.where(self._counts > 0, self._means, np.nan)
        never = np.zeros(means.shape[1], np.bool_)
        return np.stack([self._policy.targets(Evidence(row, self._situation.draws, never, floors)) for row in means])

    def _verdicts(self) -> Bools:
        """In which futures the leader may be taken."""
        sign, situation = self._situation.reward.sign, self._situation
        oriented = np.where(self._counts > 0, sign * self._means, -np.inf)
        leaders = oriented.argmax(axis=1)
        if situation.out is None or not situation.out.any():
            shown = self._all_beaten(oriented, leaders, situation.margin, None)
        else:
            shown = self._all_beaten(oriented, leaders, 0.0, situation.out)
            if situation.margin > 0.0:
                shown |= ~situation.out[leaders] & self._all_beaten(oriented, leaders, situation.margin, None)
        if situation.control is not None and situation.control_levels is not None:
            runs, control = np.arange(len(leaders)), np.full(len(leaders), situation.control)
            shown |= (leaders != control) & self._shown(runs, leaders, control, situation.control_levels[leaders], 0.0)
        return shown

    def _all_beaten(self, oriented: Floats, leaders: Ints, margin: float, out: Bools | None) -> Bools:
        """In which futures one arm is left when the rivals that the leader beats, and those that are out, are not counted.

        The closest rival is asked first: where it holds, the others need not be asked.
        """
        runs, arms = np.arange(len(leaders)), oriented.shape[1]
        known = np.zeros(arms, np.bool_) if out is None else out
        rivals = np.where(known, -np.inf, oriented)
        rivals[runs, leaders] = -np.inf
        closest = rivals.argmax(axis=1)
        # A leader that is out itself leaves room for one rival.
        spare = known[leaders]
        asked = (
            spare
            | np.isneginf(rivals[runs, closest])
            | self._shown(runs, leaders, closest, self._levels(leaders, closest), margin)
        )
        left = np.flatnonzero(asked)
        pairs, others = np.repeat(left, arms), np.tile(np.arange(arms), len(left))
        own, theirs = leaders[pairs], others
        beaten = known[theirs] | ((own != theirs) & self._shown(pairs, own, theirs, self._levels(own, theirs), margin))
        shown: Bools = np.zeros(len(runs), np.bool_)
        shown[left] = arms - beaten.reshape(len(left), arms).sum(axis=1) == 1
        return shown

    def _levels(self, leaders: Ints, rivals: Ints) -> Floats:
        levels: Floats = self._situation.levels[leaders, rivals]
        return levels

    def _shown(self, runs: Ints, leaders: Ints, rivals: Ints, levels: Floats, margin: float) -> Bools:
        own, theirs = (
            Samples(self._counts[runs, arms], self._means[runs, arms], self._squares[runs, arms]) for arms in (leaders, rivals)
        )
        high, low = (own, theirs) if self._situation.reward.sign > 0 else (theirs, own)
        shown: Bools = evidence(self._situation.reward, high, low, levels, margin) >= 1.0
        return shown
