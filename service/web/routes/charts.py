"""Pictures of an experiment, for the dashboard, a wiki or a chat."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Header, Query, Response

from service.application import sharing
from service.application.history import Course
from service.application.kept import Made, made_bytes
from service.application.recommending import Recommendation
from service.web import conditional
from service.web.body import StrictRoute
from service.web.charts import Look, draw_certainty, draw_means, draw_traffic, look_for
from service.web.charts.style import SizeName, ThemeName
from service.web.problems import documented
from service.web.requests import ContextOf

router = APIRouter(prefix="/v1/experiments/{key}", tags=["recommendation"], route_class=StrictRoute)
ChartName: TypeAlias = Literal["means", "traffic", "certainty"]
_MEDIA_TYPE = "image/svg+xml"
# Whoever does not say which version they know of may get a picture this old: a busy experiment is not drawn for each viewer.
_FRESH_SECONDS = 1.0


@router.get(
    "/charts/{chart}.svg",
    response_class=Response,
    responses=documented(404, 422, 503)
    | {
        200: {"description": "The picture.", "content": {_MEDIA_TYPE: {}}},
        304: {"description": "Nothing changed since the ETag."},
    },
)
async def get_chart(
    context: ContextOf,
    key: str,
    chart: ChartName,
    *,
    theme: ThemeName = "light",
    size: SizeName = "large",
    version: Annotated[int, Query(ge=0, description="Show this version of the experiment or a newer one.")] = 0,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Means with intervals, traffic shares over time against targets, or certainty over time, as SVG."""
    subject = ("chart", key, chart, theme, size)
    made = context.kept.newest(subject)
    if made is None or made.version < version or (not version and made.age > _FRESH_SECONDS):
        current = await context.versions.current(key)
        etag = conditional.etag_of(current)
        if conditional.matches(if_none_match, etag):
            return conditional.not_modified(etag)

        async def make() -> Made[bytes]:
            look = look_for(theme, size)
            recommendation = await sharing.recommendation(context, key, current)
            course = None if chart == "means" else await sharing.course(context, key, current)
            picture = await asyncio.to_thread(_draw, chart, look, recommendation, course)
            return made_bytes(recommendation.progress.version, picture)

        made = await context.kept.at_least(subject, current, make)
    answer = conditional.versioned(made, if_none_match, _MEDIA_TYPE)
    answer.headers["Content-Security-Policy"] = "default-src 'none'"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return answer


def _draw(chart: ChartName, look: Look, recommendation: Recommendation, course: Course | None) -> bytes:
    if course is None:
        return draw_means(look, recommendation)
    draw = draw_traffic if chart == "traffic" else draw_certainty
    return draw(look, recommendation, course)
