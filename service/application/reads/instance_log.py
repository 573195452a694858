"""The log of the instance, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.storage.queries import stored_instance_log

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.domain import LogEntry


async def log_page(reader: Reader, *, before: int | None, limit: int) -> list[LogEntry]:
    """Its entries below this number."""
    async with reader.database.reading() as connection:
        return await stored_instance_log.page_of_log(connection, before=before, limit=limit)
