"""Look: which arm is best, and what happened to the experiment."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from service.application import history, looks
from service.web import conditional, schemas, views
from service.web.body import StrictRoute
from service.web.problems import documented
from service.web.requests import ContextOf, Paged, PageSize, PageToken, json_response

router = APIRouter(prefix="/v1/experiments/{key}", tags=["recommendation"], route_class=StrictRoute)


@router.get(
    "/recommendation",
    response_model=schemas.RecommendationOut,
    responses=documented(404, 503) | {304: {"description": "Nothing changed since the ETag."}},
)
async def get_recommendation(context: ContextOf, key: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """The empirically best active arm, with how sure that is."""
    version = await context.versions.current(key)
    etag = conditional.etag_of(version)
    if conditional.matches(if_none_match, etag):
        return conditional.not_modified(etag)
    return conditional.versioned(await conditional.recommendation(context, key, version), None)


@router.get("/history", response_model=schemas.CourseOut, responses=documented(404, 422, 503))
async def get_history(context: ContextOf, key: str, points: Annotated[int, Query(ge=2, le=1000)] = 200) -> Response:
    """The course of the experiment, oldest first, thinned evenly to at most `points`; the last one is now."""
    return json_response(views.course_view(await history.course(context, key, points)))


@router.get("/events", response_model=schemas.EventPage, responses=documented(404, 422, 503))
async def list_events(context: ContextOf, key: str, before: PageToken, page_size: PageSize = 20) -> Response:
    """The audit log, newest first: what people did, and what expiry did."""
    keys, found = await looks.audit_log(context, key, before=before, limit=page_size + 1)
    page = Paged.of(found, page_size, lambda event: event.sequence)
    shown = [views.event_view(event, keys) for event in page.items]
    return json_response({"events": shown, "next_page_token": page.next_page_token})
