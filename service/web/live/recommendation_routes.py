"""Look: which arm is best, and what happened to the experiment."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from service.application.live import cached_reads
from service.application.live.version_cache import Cached, Subject, cached_bytes
from service.application.reads.page_request import PageRequest
from service.domain.limits import MOST_FORECAST_DAYS, MOST_POINTS
from service.web import etags
from service.web.api import answer_schemas, recommendation_schemas, rendered_pages, views
from service.web.api.body import StrictRoute
from service.web.api.parameters import AuditKinds, ContextOf, ExperimentKey, PageSize, PageToken, Window, json_response
from service.web.live import heavy_reads, rendered_recommendation
from service.web.problems import documented
from service.web.response_pieces import sent_in_pieces

router = APIRouter(prefix="/v1/experiments/{key}", tags=["recommendation"], route_class=StrictRoute)


@router.get(
    "/recommendation",
    response_model=recommendation_schemas.RecommendationOut,
    responses=documented(404, 503) | {304: {"description": "Nothing changed since the ETag."}},
)
async def get_recommendation(
    request: Request, context: ContextOf, key: ExperimentKey, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """The empirically best active arm, with how sure that is."""
    version = await etags.current_version(request, context, key)
    etag = etags.etag_of(version)
    if etags.matches(if_none_match, etag):
        return etags.not_modified(etag)
    return etags.versioned(await rendered_recommendation.recommendation(context, key, version), version.experiment)


@router.get("/forecast", response_model=recommendation_schemas.ForecastOut, responses=documented(404, 409, 422, 503))
async def get_forecast(
    context: ContextOf, key: ExperimentKey, within_days: Annotated[float | None, Query(gt=0, le=MOST_FORECAST_DAYS)] = None
) -> Response:
    """When the verdict will be there: further draws until the experiment is decided, by simulation, for up to 100 active arms.

    With `within_days`, how likely it is by then.
    """
    version = await context.versions.current(key)
    return json_response(views.forecast_view(await cached_reads.forecast(context, key, version), within_days))


@router.get("/history", response_model=recommendation_schemas.CourseOut, responses=documented(404, 422, 503))
async def get_history(
    context: ContextOf, key: ExperimentKey, points: Annotated[int, Query(ge=2, le=MOST_POINTS)] = 200
) -> Response:
    """The course of the experiment, oldest first, thinned evenly to at most `points`; the last one is now.

    With more than 100 arms there may be fewer points: at most 100,000 divided by the number of arms.
    """
    version = await context.versions.current(key)

    async def make() -> Cached[bytes]:
        return cached_bytes(*await context.lanes.courses.run(heavy_reads.render_history, key, points))

    made = await context.cache.at_least((Subject.HISTORY_JSON, version.experiment, points), version.number, make)
    return sent_in_pieces(made.content)


@router.get("/events", response_model=answer_schemas.EventPage, responses=documented(404, 422, 503))
async def list_events(
    context: ContextOf,
    key: ExperimentKey,
    *,
    before: PageToken,
    window: Window,
    kind: AuditKinds,
    page_size: PageSize = 20,
) -> Response:
    """The audit log, newest first: what people did, and what expiry did."""
    return sent_in_pieces(await rendered_pages.events(context, key, PageRequest(before, page_size, window), kind))
