"""Conclude by itself: an experiment that was told to do so ends once its leader is separated and has enough rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.experiments import Step
from service.application.recommending import certainty_of, leader_of
from service.storage import reading

if TYPE_CHECKING:
    from service.application.context import Context
    from service.application.ledger import Ledger
    from service.storage.lookups import Wanted


@dataclass(frozen=True, slots=True)
class ConcludeIfSure:
    """Looks at the experiment under its lock, so that it concludes once and on what is stored."""

    @property
    def weight(self) -> int:
        """One request."""
        return 1

    def want(self, wanted: Wanted, ledger: Ledger) -> None:
        """Nothing."""

    def apply(self, ledger: Ledger, now: int) -> bool:
        """Did it conclude?"""
        rule = ledger.experiment.conclude_when
        if rule is None or ledger.experiment.status not in ("running", "paused"):
            return False
        if sum(one.matured.count for one in ledger.statistics) < rule.min_observations:
            return False
        leader = leader_of(ledger.experiment.reward, ledger.arms, ledger.statistics)
        if not certainty_of(ledger, leader).separated:
            return False
        Step("conclude", by="conclude_when").apply(ledger, now)
        return True


class Concluder:
    """Asks every experiment whose version moved since it was last asked."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: dict[str, int] = {}

    async def run(self) -> None:
        """One round."""
        async with self._context.database.reading() as connection:
            waiting = await reading.experiments_to_conclude(connection)
        for key, version in waiting.items():
            if self._asked.get(key) != version:
                await self._context.writer.submit(key, ConcludeIfSure())
        self._asked = waiting
