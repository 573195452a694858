"""Looks that are computed once per version, however many people and pictures need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.application import history, recommending
from service.application.kept import Made

if TYPE_CHECKING:
    from service.application.context import Context
    from service.application.history import Course
    from service.application.recommending import Recommendation

POINTS = 200
# What one arm takes in memory, about, in a recommendation and in a point of the course.
_BYTES = 1_000


async def recommendation(context: Context, key: str, version: int) -> Recommendation:
    """The recommendation of this version or a newer one."""

    async def make() -> Made[Recommendation]:
        found = await recommending.current(context, key)
        return Made(found.progress.version, found, _BYTES * len(found.standings))

    return (await context.kept.at_least(("standing", key), version, make)).content


async def course(context: Context, key: str, version: int) -> Course:
    """The course up to this version or a newer one."""

    async def make() -> Made[Course]:
        found = await history.course(context, key, POINTS)
        newest = found.points[-1].snapshot.sequence
        return Made(newest, found, _BYTES * len(found.arms) * len(found.points))

    return (await context.kept.at_least(("course", key), version, make)).content
