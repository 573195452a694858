"""Looks that are computed once per version, however many people and pictures need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.application.live.version_cache import Cached, Subject
from service.application.reads import course as course_read
from service.application.reads import forecast as forecast_read
from service.application.reads import recommendation as recommendation_read
from service.domain.limits import MOST_FORECAST_ARMS
from service.errors import TooManyArms
from service.storage.queries import stored_experiments

if TYPE_CHECKING:
    from service.application.context import Context
    from service.application.live.reader import Reader
    from service.application.reads.course import Course
    from service.application.reads.forecast import Outlook
    from service.application.reads.recommendation import Recommendation
    from service.domain import ExperimentVersion

POINTS = 200
# What one arm takes in memory, about, in a recommendation and in a point of the course.
_BYTES = 1_000
# A forecast does not change with every draw, and costs as much as many: while traffic flows, one so old will do.
_FORECAST_SECONDS = 2.0


async def recommendation(reader: Reader, key: str, version: ExperimentVersion) -> Recommendation:
    """The recommendation of this version or a newer one."""

    async def make() -> Cached[Recommendation]:
        found = await recommendation_read.current(reader, key)
        return Cached(found.progress.version, found, _BYTES * len(found.standings))

    return (await reader.cache.at_least((Subject.RECOMMENDATION, version.experiment), version.number, make)).content


async def course(reader: Reader, key: str, version: ExperimentVersion) -> Course:
    """The course up to this version or a newer one."""

    async def make() -> Cached[Course]:
        found = await course_read.course(reader, key, POINTS)
        newest = found.points[-1].snapshot.sequence
        return Cached(newest, found, _BYTES * len(found.arms) * len(found.points))

    return (await reader.cache.at_least((Subject.COURSE, version.experiment), version.number, make)).content


async def forecast(context: Context, key: str, version: ExperimentVersion) -> Outlook:
    """The forecast of this version or a newer one, or one that is two seconds old."""
    subject = (Subject.FORECAST, version.experiment)

    async def make() -> Cached[Outlook]:
        async with context.database.reading() as connection:
            active = await stored_experiments.active_arms(connection, key)
        if active > MOST_FORECAST_ARMS:  # before all of them are read
            raise TooManyArms(f"A forecast is made for up to {MOST_FORECAST_ARMS} active arms; this experiment has {active}.")
        found = await context.lanes.courses.run(forecast_read.outlook, key)
        return Cached(found.version, found, _BYTES)

    made = context.cache.newest(subject)
    if made is None or made.version < version.number:
        made = await context.cache.within(subject, _FORECAST_SECONDS, make)
    known: Outlook = made.content
    return known
