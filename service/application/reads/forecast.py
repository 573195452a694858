"""The forecast: when the verdict will be there, from the statistics as they are, and what is lost by not waiting for it."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from service.application.reads.recommendation import recommend
from service.domain.limits import MOST_FORECAST_ARMS
from service.engine.ledger import Ledger
from service.errors import NoRecommendation, TooManyArms
from service.inference.certainty import period_of
from service.inference.levels import arm_levels
from service.inference.samples import Samples
from service.simulation.futures import Forecast, Situation, forecast, leader_levels
from service.storage.queries import stored_assignments, stored_experiments, stored_history

if TYPE_CHECKING:
    from collections.abc import Collection

    from service.application.live.reader import Reader
    from service.application.reads.recommendation import Recommendation
    from service.domain.findings import Finding
    from service.inference.verdict import Verdict

_MICROSECONDS_A_DAY = 86_400_000_000
_LEAST_ARMS = 2
# 1 January 9000: later times cannot be written down, and nobody waits for them.
_LAST_MOMENT = 221_845_392_000_000_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """What goes on being spent on arms that are shown to be worse."""

    share: float
    """Of new traffic, by the targets."""
    reward_per_day: float | None
    """How much less than with the best mean that earns; None without a rate."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """A forecast as of one version, with the traffic to tell it in time."""

    version: int
    as_of: int
    forecast: Forecast
    rate_per_day: float | None
    """Asks a day of late; None before any time has passed."""
    running: bool
    decided_at: int | None = None
    """When a verdict that is there was found, once it is kept."""
    waiting: Waiting | None = None
    """None while there is no new traffic."""

    def at(self, draws: int | None) -> int | None:
        """When so many more draws will have been made at that rate, if traffic goes on."""
        if draws is None or not self.running or not self.rate_per_day:
            return None
        if draws == 0 and self.decided_at is not None:
            return self.decided_at
        moment = self.as_of + round(draws / self.rate_per_day * _MICROSECONDS_A_DAY)
        return moment if moment < _LAST_MOMENT else None

    def probability_within(self, days: float) -> float | None:
        """That the verdict is there after so many days; None where nobody knows how much traffic they bring."""
        if self.forecast.high == 0:
            return 1.0
        if not self.running or self.rate_per_day is None:
            return None
        return self.forecast.probability_within(days * self.rate_per_day)


async def outlook(reader: Reader, key: str) -> Outlook:
    """The forecast of what is stored now. To be run in a lane: it takes up to half a second of a processor."""
    async with reader.database.reading() as connection:
        progress, records = await stored_experiments.experiment_by_key(connection, key)
        ledger = Ledger(progress, records)
        check_forecast(ledger)
        kept = await stored_experiments.findings_of(connection, progress.experiment.id)
    return _outlook(ledger, kept.values(), await rate_per_day(reader, ledger))


def check_forecast(ledger: Ledger) -> None:
    """Refuse what cannot be told."""
    active = [arm for arm in ledger.arms if arm.active]
    if len(active) < _LEAST_ARMS or not any(ledger.statistics[arm.position].matured.count for arm in active):
        raise NoRecommendation("A forecast needs two active arms, and a reward whose window has closed.")
    if len(active) > MOST_FORECAST_ARMS:
        raise TooManyArms(f"A forecast is made for up to {MOST_FORECAST_ARMS} active arms; this experiment has {len(active)}.")


def _outlook(ledger: Ledger, kept: Collection[Finding], rate: float | None) -> Outlook:
    experiment, present = ledger.experiment, recommend(ledger, kept)
    running = experiment.status == "running"
    return Outlook(
        version=ledger.version,
        as_of=ledger.as_of,
        forecast=forecast(
            situation_of(ledger, present.verdict, kept), np.random.default_rng([experiment.policy.seed, ledger.version])
        ),
        rate_per_day=rate,
        running=running,
        decided_at=present.verdict.since,
        waiting=waiting(present, rate) if running else None,
    )


def waiting(present: Recommendation, rate: float | None) -> Waiting:
    """How much of new traffic goes to arms that are shown to be worse, and what it would earn more with the best mean."""
    best = None if present.best is None else present.standings[present.best.position].mean
    worse = [present.standings[place] for place in present.verdict.out]
    gaps = [abs(best - one.mean) if best is not None and one.mean is not None else 0.0 for one in worse]
    lost = fsum(one.target_share * gap for one, gap in zip(worse, gaps, strict=True))
    return Waiting(fsum(one.target_share for one in worse), None if rate is None else lost * rate)


def situation_of(ledger: Ledger, found: Verdict, kept: Collection[Finding]) -> Situation:
    """The active arms with their matured rewards, which the verdict is made of, and what was found about them."""
    experiment, rule = ledger.experiment, ledger.experiment.conclude_when
    active = [arm for arm in ledger.arms if arm.active]
    places = {arm.position: place for place, arm in enumerate(active)}
    statistics = [ledger.statistics[arm.position] for arm in active]
    added, switched_on = np.array([arm.added for arm in ledger.arms]), np.array([arm.active for arm in ledger.arms])
    alpha = 1.0 - experiment.confidence
    worse = {one.arm for one in kept if one.kind == "separated" and one.better in places}
    return Situation(
        reward=experiment.reward,
        policy=experiment.policy,
        samples=Samples.of(*period_of([one.matured for one in statistics])),
        draws=np.array([one.epoch_draws for one in statistics], np.int64),
        floors=np.array([arm.min_share for arm in active]),
        levels=leader_levels(added, switched_on, alpha),
        margin=experiment.worthwhile or 0.0,
        decided=found.reason is not None,
        out=np.array([arm.position in worse for arm in active]),
        control=places.get(experiment.control)
        if rule is not None and rule.beats_control and experiment.control is not None
        else None,
        control_levels=arm_levels(added, alpha)[switched_on] / 2.0,
    )


async def rate_per_day(reader: Reader, ledger: Ledger) -> float | None:
    """Of the later half of the asks. Rewards that were told without one are no traffic, unless there is nothing else."""
    experiment, draws, now = ledger.experiment, ledger.draws, ledger.as_of
    if draws == 0 or experiment.pruned_at is not None:
        return await _rate_by_course(reader, ledger)
    async with reader.database.reading() as connection:
        middle, last = [
            await stored_assignments.assignment_by_draw(connection, experiment.id, one) for one in (draws // 2, draws)
        ]
    if middle is None or last is None or middle.created_at >= last.created_at:  # one ask, or one batch
        return _a_day(draws, now - experiment.created_at)
    return _a_day(draws - draws // 2, now - middle.created_at)


async def _rate_by_course(reader: Reader, ledger: Ledger) -> float | None:
    """Of the later half of whatever counts. Its beginning is looked for point by point, half of them left each time."""
    experiment, total = ledger.experiment, sum(one.draws for one in ledger.statistics)
    since, before = experiment.created_at, 0
    async with reader.database.reading() as connection:
        sequences = await stored_history.snapshot_sequences(connection, experiment.id)
        first, end = 0, len(sequences)
        while first < end:
            middle = (first + end) // 2
            (seen,) = await stored_history.snapshots_at(connection, experiment.id, [sequences[middle]])
            if 2 * sum(seen.draws) <= total:
                since, before, first = seen.at, sum(seen.draws), middle + 1
            else:
                end = middle
    return _a_day(total - before, ledger.as_of - since)


def _a_day(count: int, microseconds: int) -> float | None:
    return None if microseconds <= 0 else count * _MICROSECONDS_A_DAY / microseconds
