"""The audit log: what people did to an experiment, and what expiry did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.domain.limits import LARGE_VALUES_BYTES
from service.storage.queries import stored_assignments, stored_experiments, stored_history, stored_sizes

if TYPE_CHECKING:
    from collections.abc import Collection

    from service.application.live.reader import Reader
    from service.application.reads.page_request import PageRequest
    from service.domain import Event
    from service.storage.database import Connection


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Events, newest first, with the words that callers know arms and assignments by."""

    events: list[Event]
    arm_keys: dict[int, str]
    """By position."""
    assignment_ids: dict[int, str]
    """By draw."""
    go_on_below: int | None = None
    """Where the search stopped before the page was full: the sequence number to go on below."""


async def audit_log(reader: Reader, key: str, page: PageRequest, kinds: Collection[str] = ()) -> AuditPage:
    """A page of the audit log: of these kinds of events, or of all."""
    async with reader.database.reading() as connection:
        return await _page(connection, key, page, kinds, most_bytes=None) or AuditPage([], {}, {})


async def audit_log_if_small(reader: Reader, key: str, page: PageRequest, kinds: Collection[str] = ()) -> AuditPage | None:
    """The same, or None if it is so long that it is better read in a lane."""
    if page.is_long:
        return None
    async with reader.database.reading() as connection:
        if (await stored_sizes.size_by_key(connection, key)).is_large:
            return None
        return await _page(connection, key, page, kinds, most_bytes=LARGE_VALUES_BYTES)


async def _page(
    connection: Connection, key: str, page: PageRequest, kinds: Collection[str], *, most_bytes: int | None
) -> AuditPage | None:
    """The page, or None if its events take more than so many bytes."""
    progress = await stored_experiments.progress_by_key(connection, key)
    e = progress.experiment.id
    wanted = events = range(*await page.window.events(connection, progress, page.before))
    if kinds:
        events = await stored_history.visited_events(connection, e, wanted)
    if most_bytes is not None and await stored_history.length_of_details(connection, e, events, page.limit, kinds) > most_bytes:
        return None
    found = await stored_history.page_of_events(connection, e, events, page.limit, kinds)
    draws = {event.draw for event in found if event.draw is not None}
    ids = await stored_assignments.assignment_ids(connection, e, draws)
    is_cut = events.start > wanted.start and len(found) < page.limit
    return AuditPage(found, await stored_experiments.arm_keys(connection, e), ids, events.start if is_cut else None)
