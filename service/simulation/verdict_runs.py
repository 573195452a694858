"""Experiments played from their first draw to the verdict, many side by side, with the production tests of the verdict.

Steps are single draws at first, and a part (`step`) of the draws so far later on. Within a step the policy's targets stand still
and an arm's rewards are drawn as their sum. A reward is known some draws later (`delay`); under a numeric expiry it counts in the
verdict once its window has closed, and until it is told the policy counts the draw as silence. Each step ends in a look: what is
shown once stays shown, as in the service (`service/inference/verdict.py`).

The service looks more often, and evidence goes up and down. On the scale of z, where evidence is about z^2 / 2, a step of a part
s moves it by a deviation of about sqrt(s): so much less evidence is asked for that a verdict comes as soon as by more looks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.inference.levels import pair_levels
from service.inference.pairs import evidence
from service.inference.samples import Bools, Floats, Ints, Samples
from service.simulation.target_rows import splitter_of, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.simulation.prospect import Prospect

# Nobody waits longer.
MOST_DRAWS = 1_000_000_000
# Looks of the service are this part of the draws apart.
_LOOKS = 0.01
# A random walk that is looked at now and then crosses a bound later than one that is always looked at: as if the bound were
# higher by this much of the deviation of a step (Siegmund 1979).
_OVERSHOOT = 0.583
# Pairs below this part of what the normal approximation asks for are not tested: they cannot be shown yet.
_WORTH_TESTING = 0.8
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Waits:
    """Of every run: the draws until the verdict (infinite without one), the best arm's part of them, and was it the one found?"""

    draws: Floats
    share: Floats
    right: Bools

    @classmethod
    def unknown(cls, runs: int) -> Waits:
        """Before any verdict."""
        return cls(np.full(runs, np.inf), np.full(runs, np.nan), np.zeros(runs, np.bool_))


@dataclass(slots=True)
class _Step:
    """The draws of a step, and their rewards, which are told and count later."""

    after: int
    """How many draws came before the step."""
    until: int
    counts: Floats
    """Rewards that come, of every run and arm."""
    sums: Floats
    squares: Floats
    """Around the mean of the step."""

    @property
    def middle(self) -> float:
        return 0.5 * (self.after + self.until)

    def keep(self, rows: Bools) -> None:
        self.counts, self.sums, self.squares = self.counts[rows], self.sums[rows], self.squares[rows]


class VerdictRuns:
    """All runs, one row each; those whose verdicts are there leave."""

    def __init__(self, prospect: Prospect, runs: int, rng: np.random.Generator, step: float = 0.05) -> None:
        self._prospect, self._rng, self._step = prospect, rng, step
        self._sign = prospect.reward.sign
        self._truth = np.array(prospect.means)
        self._best = int(np.argmax(self._sign * self._truth))
        arms = len(self._truth)
        self._level = float(pair_levels(np.zeros(arms, np.int64), np.ones(arms, np.bool_), 0, 1.0 - prospect.confidence)[1])
        self._goal = -np.log(self._level)
        self._enough = 1.0 - _OVERSHOOT * (np.sqrt(step) - np.sqrt(_LOOKS)) * np.sqrt(2.0 / self._goal)
        self._splitter = splitter_of(prospect.policy, np.array(prospect.floors), runs)
        self._rows = np.arange(runs)
        self._draws, self._told, self._told_sums = (np.zeros((runs, arms)) for _ in range(3))
        self._counts, self._means, self._squares = (np.zeros((runs, arms)) for _ in range(3))
        self._out = np.zeros((runs, arms), np.bool_)
        self._untold, self._unripe = deque[_Step](), deque[_Step]()
        self.separated, self.decided = Waits.unknown(runs), Waits.unknown(runs)

    def play(self, *, until_separated: bool, enough: float = 1.0, moved: Callable[[float], None] = lambda _: None) -> None:
        """Until this part of the runs has its verdicts, or nobody would wait longer; `moved` is told how much of that is done."""
        runs, total, step = len(self._rows), 0, len(self._truth)
        wanted = int(np.ceil(enough * runs))
        lag = max(self._prospect.delay, self._prospect.window or 0)
        with np.errstate(all="ignore"):
            while runs - len(self._rows) < wanted and total < MOST_DRAWS:
                self._draw(total, step, first=total == 0)
                total += step
                step = max(1, int(self._step * total))
                known = total + 0.5 * step
                while self._untold and self._untold[0].middle + self._prospect.delay <= known:
                    self._tell(self._untold.popleft())
                while self._unripe and self._unripe[0].middle + lag <= known:
                    ripe = self._unripe.popleft()
                    self._count(ripe)
                    # Around the end of the step by as much as half of it, or the waits would stand on a grid.
                    near = (ripe.until / max(ripe.after, 1)) ** (self._rng.random(len(self._rows)) - 0.5)
                    self._look(np.ceil(ripe.until * near) + lag, until_separated=until_separated)
                moved(min(1.0, (runs - len(self._rows)) / wanted))

    def _draw(self, total: int, step: int, *, first: bool) -> None:
        """Draws of a step, by the policy; each arm once at first."""
        if first:
            new = np.ones_like(self._draws)
        else:
            new = whole(self._splitter.split(self._policy_means(), self._draws, step), step, self._rng)
        self._draws += new
        loss = self._prospect.loss
        come = self._rng.binomial(new.astype(np.int64), 1.0 - loss).astype(np.float64) if loss else new
        sums, squares = self._rewards(come)
        made = _Step(total, total + step, come, sums, squares)
        self._untold.append(made)
        self._unripe.append(made)

    def _policy_means(self) -> Floats:
        """As the policy sees them: larger is better, NaN without a reward."""
        silence = self._prospect.silence
        if silence is not None:
            means = (self._told_sums + silence * (self._draws - self._told)) / self._draws
            return self._sign * means
        return self._sign * np.where(self._told > 0.0, self._told_sums / self._told, np.nan)

    def _rewards(self, counts: Floats) -> tuple[Floats, Floats]:
        """Sums, and squares around the means, of so many rewards of each arm."""
        reward, deviation, some = self._prospect.reward, self._prospect.deviation, np.maximum(counts, 1.0)
        if reward.kind == "binary":
            sums = self._rng.binomial(counts.astype(np.int64), np.broadcast_to(self._truth, counts.shape)).astype(np.float64)
            return sums, sums * (counts - sums) / some
        if reward.kind == "real":
            sums = counts * self._truth + np.sqrt(counts) * deviation * self._rng.standard_normal(counts.shape)
            return sums, deviation**2 * 2.0 * self._rng.standard_gamma(np.maximum(counts - 1.0, 0.0) / 2.0)
        low, width = float(reward.minimum or 0.0), float(reward.maximum or 0.0) - float(reward.minimum or 0.0)
        # The mean of n rewards as a Beta variable with their mean and variance: exact for one, and within the bounds for all.
        centre, spread = (self._truth - low) / width, (deviation / width) ** 2
        strength = np.maximum(centre * (1.0 - centre) * some / spread - 1.0, _TINY)
        shares = self._rng.beta(np.maximum(centre * strength, _TINY), np.maximum((1.0 - centre) * strength, _TINY))
        squares = np.minimum(np.maximum(counts - 1.0, 0.0) * spread, counts * shares * (1.0 - shares))
        return counts * (low + width * shares), width**2 * squares

    def _tell(self, step: _Step) -> None:
        self._told += step.counts
        self._told_sums += step.sums

    def _count(self, step: _Step) -> None:
        """Its rewards count in the verdict from now on."""
        counts = self._counts + step.counts
        shift = np.where(step.counts > 0.0, step.sums / np.maximum(step.counts, 1.0) - self._means, 0.0)
        self._squares += step.squares + shift * shift * self._counts * step.counts / np.maximum(counts, 1.0)
        self._means += shift * step.counts / np.maximum(counts, 1.0)
        self._counts = counts
        if self._prospect.reward.kind == "binary":
            self._squares = counts * self._means * (1.0 - self._means)

    def _look(self, wait: Floats, *, until_separated: bool) -> None:
        """Keep what is shown now, and let go the runs of which nothing more is to be known."""
        oriented = np.where(self._counts > 0.0, self._sign * self._means, -np.inf)
        leaders = oriented.argmax(axis=1)
        runs = np.arange(len(leaders))
        self._beat(runs, leaders)
        separated = self._out.sum(axis=1) >= self._out.shape[1] - 1
        decided = separated | self._nothing_worthwhile(runs, leaders)
        share = self._draws[:, self._best] / self._draws.sum(axis=1)
        for shown, waits in ((separated, self.separated), (decided, self.decided)):
            rows = np.flatnonzero(shown & np.isinf(waits.draws[self._rows]))
            places = self._rows[rows]
            waits.draws[places], waits.share[places] = wait[rows], share[rows]
            waits.right[places] = leaders[rows] == self._best
        done = separated if until_separated else np.isfinite(self.decided.draws[self._rows])
        if done.any():
            self._keep(~done)

    def _beat(self, runs: Ints, leaders: Ints) -> None:
        """The rivals that the leaders are now shown to be better than are out, for good."""
        distance = self._distances(leaders, 0.0)
        tested = (distance >= _WORTH_TESTING * self._goal) & ~self._out
        tested[runs, leaders] = False
        rows, rivals = np.nonzero(tested)
        if len(rows):
            shown = self._evidence(rows, leaders[rows], rivals, 0.0) >= self._enough
            self._out[rows[shown], rivals[shown]] = True

    def _nothing_worthwhile(self, runs: Ints, leaders: Ints) -> Bools:
        """In which runs no rival can be better than the leader by what is worthwhile; the closest one is asked first."""
        shown = np.zeros(len(leaders), np.bool_)
        margin = self._prospect.worthwhile
        if margin is None:
            return shown
        distance = self._distances(leaders, margin)
        distance[runs, leaders] = np.inf
        rows = np.flatnonzero(distance.min(axis=1) >= _WORTH_TESTING * self._goal)
        if len(rows):
            closest = distance[rows].argmin(axis=1)
            rows = rows[self._evidence(rows, leaders[rows], closest, margin) >= self._enough]
        if len(rows):
            arms = self._out.shape[1]
            many, rivals = np.repeat(rows, arms), np.tile(np.arange(arms), len(rows))
            beaten = (rivals == leaders[many]) | (self._evidence(many, leaders[many], rivals, margin) >= self._enough)
            shown[rows] = beaten.reshape(len(rows), arms).all(axis=1)
        return shown

    def _distances(self, leaders: Ints, margin: float) -> Floats:
        """The log evidence against each rival by the normal approximation."""
        leading = leaders[:, None]
        noise = self._squares / np.maximum(self._counts, 1.0) ** 2
        gaps = self._sign * (np.take_along_axis(self._means, leading, axis=1) - self._means) + margin
        both = np.take_along_axis(noise, leading, axis=1) + noise
        known = (self._counts > 0.0) & (gaps > 0.0)
        return np.where(known, 0.5 * gaps * gaps / np.maximum(both, _TINY), 0.0)

    def _evidence(self, rows: Ints, leaders: Ints, rivals: Ints, margin: float) -> Floats:
        own, theirs = (
            Samples(self._counts[rows, arms], self._means[rows, arms], self._squares[rows, arms]) for arms in (leaders, rivals)
        )
        high, low = (own, theirs) if self._sign > 0 else (theirs, own)
        return evidence(self._prospect.reward, high, low, np.full(len(rows), self._level), margin)

    def _keep(self, rows: Bools) -> None:
        self._rows, self._out = self._rows[rows], self._out[rows]
        self._draws, self._told, self._told_sums = self._draws[rows], self._told[rows], self._told_sums[rows]
        self._counts, self._means, self._squares = self._counts[rows], self._means[rows], self._squares[rows]
        self._splitter.keep(rows)
        for step in {id(step): step for step in (*self._untold, *self._unripe)}.values():
            step.keep(rows)
