"""The once-a-second look of a worker: what is shown for the first time is kept, and whoever is to conclude by itself does.

Where a webhook asks for it, another leader and drift are noted, too (`service/domain/notices.py`).

A look costs far more than an ask, so an experiment is not looked at for every draw: from its first reward on, when its history
has grown by a hundredth, or a minute has passed. What a viewer was shown in between is kept, too, so that nobody sees a verdict
come and go. Experiments that conclude by themselves are asked whenever they moved.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from service.application.commands.auto_conclude import ConcludeIfSure
from service.application.commands.keep_findings import KeepFindings
from service.application.commands.note_pacing import NotePacing
from service.application.reads.sightings import sighting
from service.domain.callers import by_service
from service.domain.notices import Pace
from service.engine.clock import now_microseconds
from service.errors import ExperimentNotFound, Overloaded
from service.storage.queries import stored_experiments

if TYPE_CHECKING:
    from service.application.context import Context
    from service.domain import ExperimentVersion
    from service.domain.findings import Finding

# An experiment is looked at again when its version has grown by so much, or after so many seconds.
GROWTH = 0.01
_SECONDS = 60.0
# A round of looks ends after so long; the others get their turn in the next.
_ROUND_SECONDS = 0.2
# Clocks of other hosts may be so far behind.
_SKEW_MICROSECONDS = 60_000_000

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Watched:
    """An experiment under way, as the watch knows it."""

    version: int
    concludes: bool
    looked_at: int = 0
    """The version of the last look."""
    looked: float = float("-inf")
    look_again: float = float("inf")
    """When to look again, whether it has grown or not: something may be worth a note by then."""

    def is_due(self) -> bool:
        """Has it grown enough, or waited long enough?"""
        grown = self.version - self.looked_at
        if time.monotonic() >= self.look_again:
            return True
        return grown > 0 and (self.concludes or grown >= GROWTH * self.looked_at or time.monotonic() - self.looked >= _SECONDS)


class VerdictWatch:
    """One per worker. Several workers may see the same; it is kept once, because the slower one finds it kept."""

    def __init__(self, context: Context, pace: Pace | None = None) -> None:
        self._context = context
        self._notes = NotePacing(context, pace or Pace())
        self._webhooks_change = 0
        self._since = 0
        self._watched: dict[str, _Watched] = {}

    async def run(self) -> None:
        """Look once at every experiment that has grown enough."""
        for key, (seen, findings) in self._context.shown.take().items():
            with suppress(ExperimentNotFound):  # it was deleted a moment ago
                await self._keep(key, seen, findings)
        began = now_microseconds()
        async with self._context.database.reading() as connection:
            news = await stored_experiments.experiments_with_news(connection, self._since - _SKEW_MICROSECONDS)
        self._since = began
        for key, one in news.items():
            if one.has_rewards or key in self._watched:
                watched = self._watched.setdefault(key, _Watched(one.version, one.concludes))
                watched.version, watched.concludes = one.version, one.concludes
        self._look_for_new_webhooks()
        until = time.monotonic() + _ROUND_SECONDS
        for key in [key for key, watched in self._watched.items() if watched.is_due()]:
            await self._look(key)
            if time.monotonic() > until:
                break

    def _look_for_new_webhooks(self) -> None:
        """Whoever asks from now on is told of changes from now on: so it is looked at once more how things are."""
        webhooks = self._context.webhooks
        if webhooks.change != self._webhooks_change:
            self._webhooks_change = webhooks.change
            for key, watched in self._watched.items():
                if self._notes.are_wanted(key):
                    watched.look_again = 0.0

    async def _look(self, key: str) -> None:
        watched = self._watched.pop(key)
        try:
            seen = await sighting(self._context, key)
            version = seen.version
            await self._keep(key, version, seen.unkept)
            watched.look_again = time.monotonic() + await self._notes.note(key, seen)
            if watched.concludes and await self._context.writer.submit(by_service(key), ConcludeIfSure()):
                log.info("concluded by itself", experiment=key)
                return
        except ExperimentNotFound:
            return
        except Overloaded:
            self._watched[key] = watched  # when there is room
            return
        watched.looked_at, watched.looked = version.number, time.monotonic()
        watched.version = max(watched.version, version.number)
        self._watched[key] = watched  # behind the others

    async def _keep(self, key: str, version: ExperimentVersion, findings: list[Finding]) -> None:
        if not findings:
            return
        for kept in await self._context.writer.submit(by_service(key), KeepFindings(version, findings)):
            log.info("shown for the first time", experiment=key, finding=kept.kind, better=kept.better, worse=kept.worse)
