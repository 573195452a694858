"""The log of the instance: what happened to it and not to one experiment of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from service.domain import LogEntry
from service.domain.limits import MOST_VISITED_ENTRIES
from service.storage.tables import instance_log
from service.storage.traffic_rows import to_json

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import Json, LogKind
    from service.domain.callers import Caller


async def append(connection: AsyncConnection, kind: LogKind, details: dict[str, Json], at: int, caller: Caller) -> None:
    """One more entry, in the transaction that does what it says, with who did it."""
    details = details if caller.actor is None else {**details, "actor": caller.actor}
    await connection.execute(insert(instance_log).values(at=at, kind=kind, details=to_json(details)))


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """Entries; and, where the search stopped before the page was full, the number to go on below."""

    entries: list[LogEntry]
    go_on_below: int | None


async def page_of_log(
    connection: AsyncConnection, *, before: int | None, times: tuple[int | None, int | None], limit: int
) -> FoundEntries:
    """Newest first, below this number, from a time on and up to another; those are looked for among a bounded number."""
    number, (since, until) = instance_log.c.id, times
    inside = [] if before is None else [number < before]
    of_time = [] if since is None else [instance_log.c.at >= since]
    of_time += [] if until is None else [instance_log.c.at < until]
    last = None
    if of_time:
        bound = select(number).where(*inside).order_by(number.desc()).offset(MOST_VISITED_ENTRIES - 1).limit(1)
        last = (await connection.execute(bound)).scalar_one_or_none()
        inside += [*of_time, *([] if last is None else [number >= last])]
    found = (await connection.execute(select(instance_log).where(*inside).order_by(number.desc()).limit(limit))).mappings()
    entries = [LogEntry(row["id"], row["at"], row["kind"], json.loads(row["details"])) for row in found]
    return FoundEntries(entries, last if last is not None and len(entries) < limit else None)
