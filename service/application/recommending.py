"""The look: which arm is best now and how sure that is, from sufficient statistics alone, never from the history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.application.ledger import Ledger
from service.storage import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.context import Context
    from service.domain import Arm, ArmStatistics, Progress, RewardSpec

_METHODS = {"binary": "beta-binomial mixture", "bounded": "mixture bound", "real": "t-mixture"}


@dataclass(frozen=True, slots=True)
class Standing:
    """One arm, as the recommendation shows it."""

    arm: Arm
    draws: int
    pending: int
    expired: int
    observations: int
    mean: float | None
    variance: float | None
    interval: tuple[float, float] | None
    share: float
    target_share: float


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What is known, as of one version of the experiment."""

    progress: Progress
    best: Arm | None
    runner_up: Arm | None
    gap: float | None
    summary: str
    separated: bool
    method: str
    assumes: list[str]
    error_estimate: float | None
    drift: list[str]
    concluded_arm: Arm | None
    standings: list[Standing]


def shown_mean(statistics: ArmStatistics) -> float | None:
    """The arm's mean once it has a reward or an expiry; pending draws count as far as a numeric expiry speaks for them."""
    return statistics.known.mean() if statistics.observed.count else None


def ranking(reward: RewardSpec, arms: Sequence[Arm], statistics: Sequence[ArmStatistics]) -> list[int]:
    """Active arms with a mean, best first; ties go to more observations, then to the lower position."""
    means = {arm.position: shown_mean(statistics[arm.position]) for arm in arms if arm.active}
    known = [(position, mean) for position, mean in means.items() if mean is not None]
    known.sort(key=lambda one: (-reward.sign * one[1], -statistics[one[0]].observed.count, one[0]))
    return [position for position, _ in known]


def leader_of(reward: RewardSpec, arms: Sequence[Arm], statistics: Sequence[ArmStatistics]) -> int | None:
    """Position of the empirically best active arm."""
    ranked = ranking(reward, arms, statistics)
    return ranked[0] if ranked else None


def recommend(ledger: Ledger) -> Recommendation:
    """The recommendation for a ledger as it stands."""
    experiment = ledger.experiment
    ranked = ranking(experiment.reward, ledger.arms, ledger.statistics)
    best = ranked[0] if ranked else None
    runner_up = ranked[1] if len(ranked) > 1 else None
    means = [shown_mean(one) for one in ledger.statistics]
    gap = None
    if best is not None and runner_up is not None:
        gap = abs((means[best] or 0.0) - (means[runner_up] or 0.0))
    targets = np.zeros(len(ledger.arms))
    targets[ledger.positions] = ledger.targets()
    total = sum(one.draws for one in ledger.statistics)
    return Recommendation(
        progress=ledger.progress,
        best=None if best is None else ledger.arms[best],
        runner_up=None if runner_up is None else ledger.arms[runner_up],
        gap=gap,
        summary=_summary(ledger, best, gap),
        separated=False,
        method=_METHODS[experiment.reward.kind],
        assumes=[],
        error_estimate=None,
        drift=[],
        concluded_arm=None if experiment.concluded_arm is None else ledger.arms[experiment.concluded_arm],
        standings=[
            Standing(
                arm=arm,
                draws=one.draws,
                pending=one.pending,
                expired=one.expired,
                observations=one.observed.count,
                mean=means[arm.position],
                variance=one.known.variance() if one.observed.count else None,
                interval=None,
                share=one.draws / total if total else 0.0,
                target_share=float(targets[arm.position]),
            )
            for arm, one in zip(ledger.arms, ledger.statistics, strict=True)
        ],
    )


def _summary(ledger: Ledger, best: int | None, gap: float | None) -> str:
    if best is None:
        return "No reward has been told yet."
    lead = "" if gap is None else f", ahead by {gap:.3g}"
    return f"{ledger.arms[best].name} leads{lead}."


async def current(context: Context, key: str) -> Recommendation:
    """The recommendation as of what is stored now."""
    async with context.database.reading() as connection:
        progress, records = await reading.experiment_by_key(connection, key)
    return recommend(Ledger(progress, records))
