"""The log of the instance: what happened to it and not to one experiment of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from service.domain import LogEntry
from service.storage.tables import instance_log
from service.storage.traffic_rows import to_json

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import Json, LogKind


async def append(connection: AsyncConnection, kind: LogKind, details: dict[str, Json], at: int) -> None:
    """One more entry, in the transaction that does what it says."""
    await connection.execute(insert(instance_log).values(at=at, kind=kind, details=to_json(details)))


async def page_of_log(connection: AsyncConnection, *, before: int | None, limit: int) -> list[LogEntry]:
    """Newest first, below this number."""
    wanted = select(instance_log).order_by(instance_log.c.id.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(instance_log.c.id < before)
    found = (await connection.execute(wanted)).mappings()
    return [LogEntry(row["id"], row["at"], row["kind"], json.loads(row["details"])) for row in found]
