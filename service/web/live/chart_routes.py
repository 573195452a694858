"""Pictures of an experiment, for the dashboard, a wiki or a chat."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from service.application.live.version_cache import Cached, Subject, cached_bytes
from service.errors import NotFound
from service.web import etags
from service.web.api.body import StrictRoute
from service.web.api.parameters import ContextOf, ExperimentKey
from service.web.charts.style import SizeName, ThemeName
from service.web.live import heavy_reads
from service.web.problems import documented

router = APIRouter(prefix="/v1/experiments/{key}", tags=["recommendation"], route_class=StrictRoute)
_CHARTS = ("means", "traffic", "certainty")
_MEDIA_TYPE = "image/svg+xml"


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
    request: Request,
    context: ContextOf,
    key: ExperimentKey,
    chart: Annotated[str, Path(json_schema_extra={"enum": list(_CHARTS)})],
    *,
    theme: ThemeName = "light",
    size: SizeName = "large",
    utc_offset: Annotated[
        int, Query(ge=-720, le=840, multiple_of=15, description="Minutes ahead of UTC of the clock that its times are told by.")
    ] = 0,
    version: Annotated[int, Query(ge=0, description="Show this version of the experiment or a newer one.")] = 0,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Means with intervals, traffic shares over time against targets, or progress to the verdict over time, as SVG.

    The picture shows every change that was acknowledged before it was asked for; with `version`, all up to that one.
    """
    if chart not in _CHARTS:
        raise NotFound(f"There is no chart {chart!r}: there are {', '.join(_CHARTS)}.")
    current = await etags.current_version(request, context, key)
    subject = (Subject.CHART, current.experiment, chart, theme, size, utc_offset)
    made = context.cache.newest(subject) if version else None
    if made is None or made.version < version:
        etag = etags.etag_of(current)
        if etags.matches(if_none_match, etag):
            return etags.not_modified(etag)

        async def make() -> Cached[bytes]:
            looks = theme, size, utc_offset
            return cached_bytes(*await context.lanes.courses.run(heavy_reads.draw_chart, key, current, chart, looks))

        made = await context.cache.at_least(subject, current.number, make)
    answer = etags.versioned(made, current.experiment, if_none_match, _MEDIA_TYPE)
    answer.headers["Content-Security-Policy"] = "default-src 'none'"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return answer
