"""The log of the instance, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.storage.queries import stored_instance_log

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.application.reads.page_request import PageRequest
    from service.storage.queries.stored_instance_log import FoundEntries


async def log_page(reader: Reader, page: PageRequest) -> FoundEntries:
    """A page of its entries."""
    times = page.window.since, page.window.until
    async with reader.database.reading() as connection:
        return await stored_instance_log.page_of_log(connection, before=page.before, times=times, limit=page.limit)
