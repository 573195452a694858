"""The list at a glance: which experiments there are, which arm leads each, how sure that is and where the traffic goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application import history
from service.storage import listing

if TYPE_CHECKING:
    from service.application.context import Context

PAGE = 20
_SPARKLINE_POINTS = 40


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part of the list."""

    text: str = ""
    status: str | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class Found:
    """The experiments on the page with their versions, and how many there are in all, by status."""

    page: list[tuple[str, int]]
    counts: dict[str, int]


async def find(context: Context, wanted: Wanted) -> Found:
    """One page of the list, newest first."""
    async with context.database.reading() as connection:
        counts = await listing.count_by_status(connection, wanted.text)
        page = await listing.page_of_versions(
            connection, text=wanted.text, status=wanted.status, skip=(wanted.page - 1) * PAGE, limit=PAGE
        )
    return Found(page, counts)


async def leaders_share(context: Context, key: str) -> tuple[int, list[float]]:
    """The version, and the share over time of the arm that leads now."""
    course = await history.course(context, key, _SPARKLINE_POINTS)
    leader = course.points[-1].best
    version = course.points[-1].snapshot.sequence
    return version, [] if leader is None else [point.snapshot.share(leader.position) for point in course.points]
