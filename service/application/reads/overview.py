"""The list at a glance: which experiments there are, which arm leads each, how sure that is and where the traffic goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.storage.queries import experiment_list

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.domain import ExperimentVersion

PAGE = 20


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Which part of the list."""

    text: str = ""
    status: str | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class ListPage:
    """The experiments on the page with their versions, and how many there are in all, by status."""

    page: list[tuple[str, ExperimentVersion]]
    counts: dict[str, int]


async def find(reader: Reader, wanted: ListFilter) -> ListPage:
    """One page of the list, newest first."""
    async with reader.database.reading() as connection:
        counts = await experiment_list.count_by_status(connection, wanted.text)
        page = await experiment_list.page_of_versions(
            connection, text=wanted.text, status=wanted.status, skip=(wanted.page - 1) * PAGE, limit=PAGE
        )
    return ListPage(page, counts)
