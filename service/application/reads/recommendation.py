"""The look: which arm is best now and how sure that is, from sufficient statistics alone, never from the history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from service.domain import ExperimentVersion
from service.engine.ledger import Ledger
from service.engine.snapshots import target_shares
from service.inference.assumptions import assumptions
from service.inference.certainty import Certainty, certainty_of, period_of, rank
from service.inference.drift import drifting
from service.inference.intervals import METHODS
from service.inference.levels import arm_levels
from service.inference.lift import Lift
from service.inference.summary import Facts, summary
from service.inference.verdict import Verdict, new_findings, verdict
from service.storage.queries import stored_experiments

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from service.application.live.reader import Reader
    from service.domain import Arm, Progress
    from service.domain.findings import Finding


class Standing(msgspec.Struct, frozen=True):
    """One arm, as the recommendation shows it."""

    arm: Arm
    draws: int
    pending: int
    expired: int
    observations: int
    mean: float | None
    variance: float | None
    interval: tuple[float, float] | None
    evidence: float | None
    harmful: bool
    lift: Lift | None
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
    verdict: Verdict
    method: str
    assumes: list[str]
    error_estimate: float | None
    drift: list[str]
    concluded_arm: Arm | None
    standings: list[Standing]
    unkept: list[Finding]
    """What is shown now and was not found before."""

    @property
    def version(self) -> ExperimentVersion:
        """Of which experiment, as of which event."""
        return ExperimentVersion(self.progress.experiment.id, self.progress.version)


def _drifting(ledger: Ledger, contradicted: frozenset[int]) -> list[Arm]:
    """Arms whose recent rewards do not look like their earlier ones, or of which the contrary was found before."""
    levels = arm_levels(np.array([arm.added for arm in ledger.arms]), 1.0 - ledger.experiment.confidence)
    # Arms with nothing to compare yet, or nothing since, cannot drift: most arms of a young experiment.
    compared = [place for place, one in enumerate(ledger.statistics) if one.matured.count > one.earlier.count > 0]
    if not compared:
        return [ledger.arms[place] for place in sorted(contradicted)]
    before = [ledger.statistics[place].earlier for place in compared]
    earlier = period_of(before)
    recent = period_of([ledger.statistics[place].matured for place in compared], less=before)
    moved = drifting(ledger.experiment.reward, earlier, recent, levels[compared])
    places = {compared[int(place)] for place in np.flatnonzero(moved)}
    return [ledger.arms[place] for place in sorted(places | contradicted)]


class _Ranking(msgspec.Struct, frozen=True):
    """The arms as people see them: their means, and who leads."""

    means: list[float | None]
    variances: list[float | None]
    best: int | None
    runner_up: int | None
    gap: float | None

    def behind(self, arm: int | None) -> float | None:
        """How far the mean of an arm is from the best."""
        mean = None if arm is None else self.means[arm]
        best = None if self.best is None else self.means[self.best]
        return None if mean is None or best is None else abs(best - mean)


def _ranking(ledger: Ledger, observations: Sequence[int]) -> _Ranking:
    known = period_of([one.known for one in ledger.statistics])
    counts = known.counts.tolist()
    means = [mean if count else None for mean, count in zip(known.means.tolist(), counts, strict=True)]
    variances = [variance if count > 1 else None for variance, count in zip(known.variances.tolist(), counts, strict=True)]
    ranked = rank(ledger.experiment.reward, [arm.active for arm in ledger.arms], means, observations)
    best = ranked[0] if ranked else None
    runner_up = ranked[1] if len(ranked) > 1 else None
    gap = None if best is None or runner_up is None else abs((means[best] or 0.0) - (means[runner_up] or 0.0))
    return _Ranking(means, variances, best, runner_up, gap)


def _held_up_by_floors(ledger: Ledger, targets: Sequence[float]) -> tuple[str, ...]:
    """The active arms that the policy alone gives no more than their floor: target = floor + (1 - all floors) * what it gives."""
    promised = [arm for arm in ledger.arms if arm.active and arm.min_share > 0]
    free = max(0.0, 1.0 - sum(arm.min_share for arm in promised))
    return tuple(arm.name for arm in promised if targets[arm.position] - arm.min_share <= arm.min_share * free)


def _facts(
    ledger: Ledger, ranking: _Ranking, sure: Certainty, found: Verdict, *, drift: Sequence[Arm], floors: tuple[str, ...]
) -> Facts:
    """What the plain sentences are made of."""
    experiment, arms, statistics = ledger.experiment, ledger.arms, ledger.statistics
    numeric_expiry = experiment.expiry is not None and experiment.expiry.reward is not None
    expired = sum(one.expired for one in statistics)
    subject = next((place for place in (found.arm, ranking.best) if place is not None), None)

    def name(place: int | None) -> str | None:
        return None if place is None else arms[place].name

    return Facts(
        leader=name(ranking.best),
        runner_up=name(ranking.runner_up),
        gap=ranking.gap,
        kind=experiment.reward.kind,
        goal=experiment.reward.goal,
        active_arms=len(ledger.allocator.active),
        observations=sum(one.observed.count for one in statistics),
        pending=sum(one.pending for one in statistics),
        confidence=experiment.confidence,
        state=found.state,
        reason=found.reason,
        shown=name(found.shown),
        worthwhile=experiment.worthwhile,
        control=name(experiment.control),
        lift=None if subject is None else sure.lifts[subject],
        harmful=tuple(arms[place].name for place in sorted(found.harmful)),
        held_up_by=name(found.held_up_by),
        progress=found.progress,
        concluded=name(experiment.concluded_arm),
        behind=ranking.behind(experiment.concluded_arm),
        floors=floors,
        disabled=tuple(arm.name for arm in arms if not arm.active),
        dropped=0 if numeric_expiry else expired,
        imputed=expired if numeric_expiry else 0,
        drift=tuple(arm.name for arm in drift),
        imported=ledger.progress.imported,
    )


def _standings(ledger: Ledger, ranking: _Ranking, sure: Certainty, found: Verdict, targets: Sequence[float]) -> list[Standing]:
    draws = [one.draws for one in ledger.statistics]
    total = sum(draws)
    return [
        Standing(
            arm=arm,
            draws=draws[arm.position],
            pending=one.pending,
            expired=one.expired,
            observations=one.observed.count,
            mean=ranking.means[arm.position],
            variance=ranking.variances[arm.position],
            interval=sure.intervals[arm.position],
            evidence=1.0 if arm.position in found.out and arm.position != ranking.best else sure.evidence[arm.position],
            harmful=arm.position in found.harmful,
            lift=sure.lifts[arm.position],
            share=draws[arm.position] / total if total else 0.0,
            target_share=targets[arm.position],
        )
        for arm, one in zip(ledger.arms, ledger.statistics, strict=True)
    ]


def recommend(ledger: Ledger, kept: Collection[Finding] = ()) -> Recommendation:
    """The recommendation for a ledger as it stands, with the findings that hold."""
    experiment, arms, statistics = ledger.experiment, ledger.arms, ledger.statistics
    ranking = _ranking(ledger, [one.observed.count for one in statistics])
    sure = certainty_of(experiment, arms, statistics, ranking.best)
    found = verdict(experiment, arms, sure, ranking.best, kept)
    drift = _drifting(ledger, found.contradicted)
    targets = target_shares(ledger)
    facts = _facts(ledger, ranking, sure, found, drift=drift, floors=_held_up_by_floors(ledger, targets))
    return Recommendation(
        progress=ledger.progress,
        best=None if ranking.best is None else arms[ranking.best],
        runner_up=None if ranking.runner_up is None else arms[ranking.runner_up],
        gap=ranking.gap,
        summary=summary(facts),
        verdict=found,
        method=METHODS[experiment.reward.kind],
        assumes=assumptions(
            experiment.reward,
            expiry=experiment.expiry,
            observed=ledger.progress.observed,
            floors=bool(facts.floors),
            drift=bool(drift),
        ),
        error_estimate=sure.error_estimate,
        drift=[arm.key for arm in drift],
        concluded_arm=None if experiment.concluded_arm is None else arms[experiment.concluded_arm],
        standings=_standings(ledger, ranking, sure, found, targets),
        unkept=new_findings(experiment, arms, sure, ranking.best, kept),
    )


async def current(reader: Reader, key: str) -> Recommendation:
    """The recommendation as of what is stored now."""
    async with reader.database.reading() as connection:
        progress, records = await stored_experiments.experiment_by_key(connection, key)
        kept = await stored_experiments.findings_of(connection, progress.experiment.id)
    return recommend(Ledger(progress, records), kept.values())


async def current_of_few_arms(reader: Reader, key: str) -> Recommendation | None:
    """The same, or None if there are so many arms that it is better computed in a lane."""
    async with reader.database.reading() as connection:
        found = await stored_experiments.small_experiment_by_key(connection, key)
        if found is None:
            return None
        kept = await stored_experiments.findings_of(connection, found[0].experiment.id)
    return recommend(Ledger(*found), kept.values())
