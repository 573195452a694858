"""The sweep: silent draws expire, rewarded ones mature when their window closes.

Every worker sweeps. An expiry is written only if the version it was decided on is stored, so each happens once. Decisions never
read the clock: an expiry takes effect when it is swept, as an event like any other.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from service.application.commands.verdict_watch import VerdictWatch
from service.application.live.vital_signs import expiries_settled
from service.domain import step_when_due
from service.domain.callers import by_service
from service.domain.lookups import DUE_AT_ONCE
from service.engine.clock import now_microseconds
from service.errors import ExperimentNotFound
from service.storage.queries import stored_assignments, stored_replies

if TYPE_CHECKING:
    from service.application.context import Context
    from service.domain.callers import Scope
    from service.domain.lookups import LookupRequest
    from service.domain.notices import Pace
    from service.engine.ledger import Ledger

_REPLIES_KEPT_SECONDS = 48 * 3600
_FORGET_EVERY_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Sweep:
    """Settle up to a chunk of assignments that were due by this time."""

    due_by: int

    scope: ClassVar[Scope] = "manage"
    by_unit: ClassVar[bool] = False

    @property
    def weight(self) -> int:
        """Counted as a full chunk, so that it does not make a group of asks long."""
        return DUE_AT_ONCE

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """The due assignments."""
        lookups.due_by = self.due_by

    def apply(self, ledger: Ledger, now: int) -> int:
        """How many were settled."""
        if ledger.experiment.status == "archived" or ledger.experiment.pruned_at is not None:
            return 0
        expired = 0
        for draw in ledger.seen.due:
            assignment = ledger.seen.assignments[draw]
            if assignment.due_at is None or assignment.due_at > self.due_by:
                continue  # told or voided by an earlier request of this very group
            kind, reward = step_when_due(assignment.state, assignment.expiry_reward)
            ledger.step(assignment, kind, reward, now)
            expired += kind == "expiry"
        if expired:
            ledger.note("expiry_run", {"expired": expired}, now)
        return len(ledger.seen.due)


class Sweeper:
    """Settles what is due, and then looks at the experiments that have grown."""

    def __init__(self, context: Context, pace: Pace | None = None) -> None:
        self._context = context
        self._forget_at = 0.0
        self._watch = VerdictWatch(context, pace)

    async def round(self) -> None:
        """What a worker does once a second."""
        await self.sweep()
        await self._watch.run()

    async def sweep(self) -> None:
        """Settle everything that is due now.

        By the database's clock, too: draws are those of all workers, and one whose own clock is ahead must not end them early.
        """
        due_by = now_microseconds()
        async with self._context.database.reading() as connection:
            due_by = min(due_by, await stored_assignments.database_time(connection) or due_by)
            keys = await stored_assignments.experiments_with_due(connection, due_by)
        await asyncio.gather(*(self._settle(key, due_by) for key in keys))
        expiries_settled(due_by)
        loop_time = asyncio.get_running_loop().time()
        if loop_time >= self._forget_at:
            self._forget_at = loop_time + _FORGET_EVERY_SECONDS
            async with self._context.database.writing() as connection:
                await stored_replies.forget_replies(connection, due_by - _REPLIES_KEPT_SECONDS * 1_000_000)

    async def _settle(self, key: str, due_by: int) -> None:
        with suppress(ExperimentNotFound):  # it was deleted a moment ago
            while await self._context.writer.submit(by_service(key), Sweep(due_by)) == DUE_AT_ONCE:
                pass
