"""Look: which arm is best, and what happened to the experiment."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from service import __version__
from service.application import history, looks, recommending
from service.web import schemas, views
from service.web.body import StrictRoute
from service.web.problems import documented
from service.web.requests import ContextOf, Paged, PageSize, PageToken, json_response

router = APIRouter(prefix="/v1/experiments/{key}", tags=["recommendation"], route_class=StrictRoute)


def etag_of(version: int) -> str:
    """Made of the release and the version: either may change what is shown."""
    return f'"{__version__}-{version}"'


def matches(if_none_match: str | None, etag: str) -> bool:
    """Does the caller have this state already? (RFC 9110: a list, weak tags compare equal, * is any)."""
    if if_none_match is None:
        return False
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or "*" in given


@router.get(
    "/recommendation",
    response_model=schemas.RecommendationOut,
    responses=documented(404, 503) | {304: {"description": "Nothing changed since the ETag."}},
)
async def get_recommendation(context: ContextOf, key: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """The empirically best active arm, with how sure that is."""
    if if_none_match is not None:
        etag = etag_of(await recommending.version(context, key))
        if matches(if_none_match, etag):
            return Response(status_code=304, headers={"ETag": etag})
    recommendation = await recommending.current(context, key)
    headers = {"ETag": etag_of(recommendation.progress.version), "Cache-Control": "no-cache"}
    return json_response(views.recommendation_view(recommendation), headers=headers)


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
