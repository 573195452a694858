"""What the service's own look sees of an experiment: small enough to come from a lane, enough to keep, to note and to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from service.application.reads import recommendation
from service.domain import ExperimentVersion
from service.domain.findings import Finding

if TYPE_CHECKING:
    from service.application.context import Context
    from service.application.live.reader import Reader
    from service.application.reads.recommendation import Recommendation


class Sighting(msgspec.Struct, frozen=True):
    """The recommendation, as of one version; arms that the history names by their positions, and others by their keys."""

    version: ExperimentVersion
    unkept: list[Finding]
    """What is shown now and was not found before."""
    leader: int | None
    drifting: list[int]
    arm: str | None
    runner_up: str | None
    gap: float | None
    draws: int
    observations: int
    summary: str


async def sighting(context: Context, key: str) -> Sighting:
    """A look at the experiment as it is stored now; of many arms, from a lane."""
    found = await recommendation.current_of_few_arms(context, key)
    if found is None:
        return await context.lanes.present.run(_sighting, key)
    return _seen(found)


async def _sighting(reader: Reader, key: str) -> Sighting:
    return _seen(await recommendation.current(reader, key))


def _seen(found: Recommendation) -> Sighting:
    drifting = set(found.drift)
    return Sighting(
        version=found.version,
        unkept=found.unkept,
        leader=None if found.best is None else found.best.position,
        drifting=[one.arm.position for one in found.standings if one.arm.key in drifting],
        arm=None if found.best is None else found.best.key,
        runner_up=None if found.runner_up is None else found.runner_up.key,
        gap=found.gap,
        draws=sum(one.draws for one in found.standings),
        observations=sum(one.observations for one in found.standings),
        summary=found.summary,
    )
