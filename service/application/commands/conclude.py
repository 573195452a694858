"""Conclude by itself: an experiment that was told to do so ends once it is separated or decided and has enough rewards."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.commands.lifecycle import LifecycleMove
from service.errors import ExperimentNotFound
from service.inference.certainty import certainty_of, leader_of
from service.storage.queries import stored_experiments

if TYPE_CHECKING:
    from service.application.context import Context
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger


@dataclass(frozen=True, slots=True)
class ConcludeIfSure:
    """A command like any other: written only if the version it was decided on is stored, so an experiment concludes once."""

    @property
    def weight(self) -> int:
        """One request."""
        return 1

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """Nothing."""

    def apply(self, ledger: Ledger, now: int) -> bool:
        """Did it conclude?"""
        rule = ledger.experiment.conclude_when
        if rule is None or ledger.experiment.status not in ("running", "paused"):
            return False
        if sum(one.matured.count for one in ledger.statistics) < rule.min_observations:
            return False
        leader = leader_of(ledger.experiment.reward, ledger.arms, ledger.statistics)
        sure = certainty_of(ledger.experiment, ledger.arms, ledger.statistics, leader)
        if not (sure.decided if rule.decided else sure.separated):
            return False
        LifecycleMove("conclude", by="conclude_when").apply(ledger, now)
        return True


class Concluder:
    """Asks every experiment whose version moved since it was last asked."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: dict[str, int] = {}

    async def run(self) -> None:
        """One round."""
        async with self._context.database.reading() as connection:
            waiting = await stored_experiments.experiments_to_conclude(connection)
        for key, version in waiting.items():
            if self._asked.get(key) != version:
                with suppress(ExperimentNotFound):  # it was deleted a moment ago
                    await self._context.writer.submit(key, ConcludeIfSure())
        self._asked = waiting
