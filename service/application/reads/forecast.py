"""The forecast: when the verdict will be there, from the statistics as they are, and what is lost by not waiting for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain.limits import MOST_FORECAST_ARMS
from service.engine.ledger import Ledger
from service.errors import NoRecommendation, TooManyArms
from service.inference.certainty import period_of
from service.inference.samples import Samples
from service.simulation.futures import Forecast, Situation, forecast, leader_levels
from service.storage.queries import stored_experiments, stored_history

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.context import Context
    from service.application.live.reader import Reader
    from service.domain import Snapshot

_MICROSECONDS_A_DAY = 86_400_000_000
_LEAST_ARMS = 2
# 1 January 9000: later times cannot be written down, and nobody waits for them.
_LAST_MOMENT = 221_845_392_000_000_000


@dataclass(frozen=True, slots=True)
class Outlook:
    """A forecast as of one version, with the traffic to tell it in time."""

    version: int
    as_of: int
    forecast: Forecast
    rate_per_day: float | None
    """Draws a day of late; None before any time has passed."""
    running: bool

    def at(self, draws: int | None) -> int | None:
        """When so many more draws will have been made at that rate, if traffic goes on."""
        if draws is None or not self.running or not self.rate_per_day:
            return None
        moment = self.as_of + round(draws / self.rate_per_day * _MICROSECONDS_A_DAY)
        return moment if moment < _LAST_MOMENT else None


async def outlook(context: Context, key: str) -> Outlook:
    """The forecast of what is stored now, computed off the event loop, one at a time in each process."""
    ledger, course = await _read(context, key)
    situation = situation_of(ledger)
    async with context.forecasting:
        found = await asyncio.to_thread(forecast, situation, _rng(ledger))
    return _outlook(ledger, course, found)


async def outlook_in_lane(reader: Reader, key: str) -> Outlook:
    """The same, in a lane's process, which does one thing at a time anyway."""
    ledger, course = await _read(reader, key)
    return _outlook(ledger, course, forecast(situation_of(ledger), _rng(ledger)))


async def _read(reader: Reader | Context, key: str) -> tuple[Ledger, list[Snapshot]]:
    async with reader.database.reading() as connection:
        progress, records = await stored_experiments.experiment_by_key(connection, key)
        versions = await stored_history.snapshot_sequences(connection, progress.experiment.id)
        return Ledger(progress, records), await stored_history.snapshots_at(connection, progress.experiment.id, versions)


def _rng(ledger: Ledger) -> np.random.Generator:
    """One version has one forecast."""
    return np.random.default_rng([ledger.experiment.policy.seed, ledger.version])


def _outlook(ledger: Ledger, course: Sequence[Snapshot], found: Forecast) -> Outlook:
    return Outlook(
        version=ledger.version,
        as_of=ledger.as_of,
        forecast=found,
        rate_per_day=rate_per_day(ledger, course),
        running=ledger.experiment.status == "running",
    )


def situation_of(ledger: Ledger) -> Situation:
    """The active arms with their matured rewards, which the verdict is made of."""
    experiment = ledger.experiment
    active = [arm for arm in ledger.arms if arm.active]
    statistics = [ledger.statistics[arm.position] for arm in active]
    if len(active) < _LEAST_ARMS or not any(one.matured.count for one in statistics):
        raise NoRecommendation("A forecast needs two active arms, and a reward whose window has closed.")
    if len(active) > MOST_FORECAST_ARMS:
        raise TooManyArms(f"A forecast is made for up to {MOST_FORECAST_ARMS} active arms; this experiment has {len(active)}.")
    added, switched_on = np.array([arm.added for arm in ledger.arms]), np.array([arm.active for arm in ledger.arms])
    return Situation(
        reward=experiment.reward,
        policy=experiment.policy,
        samples=Samples.of(*period_of([one.matured for one in statistics])),
        draws=np.array([one.epoch_draws for one in statistics], np.int64),
        floors=np.array([arm.min_share for arm in active]),
        levels=leader_levels(added, switched_on, 1.0 - experiment.confidence),
        margin=experiment.worthwhile or 0.0,
    )


def rate_per_day(ledger: Ledger, course: Sequence[Snapshot]) -> float | None:
    """Of the later half of the draws, as the course has them."""
    total = sum(one.draws for one in ledger.statistics)
    earlier = [(one.at, sum(one.draws)) for one in course if 2 * sum(one.draws) <= total]
    since, before = earlier[-1] if earlier else (ledger.experiment.created_at, 0)
    passed = ledger.as_of - since
    return None if passed <= 0 else (total - before) * _MICROSECONDS_A_DAY / passed
