"""Which changes a look has to note: those that a webhook asks for, at the pace of `service/domain/notices.py`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from service.application.commands.note_changes import NewLeader, NoteChanges
from service.domain.callers import by_service
from service.engine.clock import now_microseconds
from service.storage.queries import announced_events, stored_experiments

if TYPE_CHECKING:
    from service.application.context import Context
    from service.application.reads.sightings import Sighting
    from service.domain.notices import Pace

# After a note that was not written, because somebody else was faster.
_SHORTEST_WAIT = 1.0


class NotePacing:
    """One per worker. Where nobody asks, it costs nothing: no event is written, and nothing is read."""

    def __init__(self, context: Context, pace: Pace) -> None:
        self._context, self._pace = context, pace

    def are_wanted(self, key: str) -> bool:
        """Does anybody ask for such notes about this experiment?"""
        webhooks = self._context.webhooks
        return webhooks.want("recommendation.changed", key) or webhooks.want("drift.noticed", key)

    async def note(self, key: str, seen: Sighting) -> float:
        """Write down what is to be noted; in how many seconds to look again, although nothing may happen until then."""
        webhooks = self._context.webhooks
        wants_leader, drifting = webhooks.want("recommendation.changed", key), seen.drifting
        if not webhooks.want("drift.noticed", key):
            drifting = []
        if not wants_leader and not drifting:
            return math.inf
        async with self._context.database.reading() as connection:
            progress = await stored_experiments.progress_by_key(connection, key)
            if progress.experiment.status not in ("running", "paused"):
                return math.inf
            noticed = await announced_events.last_notices(connection, progress)
        now, drifting, leader_wait, drift_wait = now_microseconds(), noticed.new_among(drifting), math.inf, math.inf
        if wants_leader and seen.leader != noticed.leader:
            leader_wait = self._pace.wait_for_leader(noticed, seen.version.number, now)
        if drifting:
            drift_wait = self._pace.wait_for_drift(noticed, now)
        leader = NewLeader(seen.leader, noticed.leader, first=noticed.is_first) if leader_wait <= 0 else None
        changes = NoteChanges(seen.version, leader, drifting if drift_wait <= 0 else [])
        if changes.leader is not None or changes.drifting:
            await self._context.writer.submit(by_service(key), changes)
        return max(_SHORTEST_WAIT, min(leader_wait, drift_wait))
