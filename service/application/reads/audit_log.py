"""The audit log: what people did to an experiment, and what expiry did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.reads.time_window import ALWAYS
from service.storage.queries import stored_assignments, stored_experiments, stored_history

if TYPE_CHECKING:
    from collections.abc import Collection

    from service.application.context import Context
    from service.application.reads.time_window import TimeWindow
    from service.domain import Event


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Events, newest first, with the words that callers know arms and assignments by."""

    events: list[Event]
    arm_keys: list[str]
    """By position."""
    assignment_ids: dict[int, str]
    """By draw."""


async def audit_log(
    context: Context, key: str, *, before: int | None, limit: int, window: TimeWindow = ALWAYS, kinds: Collection[str] = ()
) -> AuditPage:
    """A page of the audit log: of these kinds of events, or of all."""
    async with context.database.reading() as connection:
        progress, records = await stored_experiments.experiment_by_key(connection, key)
        e = progress.experiment.id
        first, end = await window.events(connection, progress, before)
        found = await stored_history.page_of_events(connection, e, first=first, before=end, limit=limit, kinds=kinds)
        draws = {event.draw for event in found if event.draw is not None}
        ids = await stored_assignments.assignment_ids(connection, e, draws)
    return AuditPage(found, [record.arm.key for record in records], ids)
