"""Duplicate: a draft with the settings and arms of another experiment, and nothing of what happened to it."""

from __future__ import annotations

from dataclasses import replace
from secrets import randbelow
from typing import TYPE_CHECKING

from service.application.commands.experiments import store
from service.application.reads.experiment_descriptions import describe
from service.domain.limits import LARGEST_SEED

if TYPE_CHECKING:
    from service.application.commands.experiments import Described
    from service.application.commands.idempotency import Once, Rendered
    from service.application.live.reader import WritingReader
    from service.domain import Arm, Experiment
    from service.domain.callers import Access


async def duplicate(context: WritingReader, source: Access, key: str, once: Once[Described]) -> Rendered:
    """Store the draft, once per idempotency key; its first event says whose duplicate it is."""
    source.caller.require("manage", source.key)
    progress, records = await describe(context, source.key)
    experiment = progress.experiment
    arms = [_fresh(record.arm) for record in records]
    return await store(context, source.caller, _draft_of(experiment, key), arms, once, source=experiment)


def _draft_of(experiment: Experiment, key: str) -> Experiment:
    """The same settings, and a seed of its own: two experiments must not fall alike. A name that was only the key follows it."""
    policy = replace(experiment.policy, seed=randbelow(LARGEST_SEED + 1), keeps_floors=True)
    name = key if experiment.name == experiment.key else experiment.name
    fresh = replace(experiment, id=0, key=key, name=name, policy=policy, status="draft")
    return replace(fresh, concluded_arm=None, last_move=None, pruned_at=None)


def _fresh(arm: Arm) -> Arm:
    """The same arm, among those that an experiment begins with; a disabled one stays disabled."""
    return replace(arm, added=0)
