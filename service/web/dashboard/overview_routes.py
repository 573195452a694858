"""The list at a glance, as JSON: the whole page computed at most twice a second."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from service.application.live.version_cache import Cached, Subject, cached_bytes
from service.application.reads import overview
from service.domain import ExperimentStatus
from service.domain.limits import KEY_PATTERN, LONGEST_NAME, LONGEST_OWNER
from service.storage.queries.experiment_list import ExperimentFilter
from service.web import etags
from service.web.api.body import StrictRoute
from service.web.api.content_etags import etag_of_content
from service.web.api.parameters import CallerOf, ContextOf
from service.web.dashboard.overview_page import render_page

router = APIRouter(prefix="/dashboard", include_in_schema=False, route_class=StrictRoute)
_FRESH_SECONDS = 0.5


@router.get("/experiments")
async def list_at_a_glance(
    context: ContextOf,
    caller: CallerOf,
    *,
    text: Annotated[str, Query(max_length=LONGEST_NAME)] = "",
    status: ExperimentStatus | None = None,
    tag: Annotated[str | None, Query(pattern=f"^{KEY_PATTERN}$")] = None,
    owner: Annotated[str | None, Query(max_length=LONGEST_OWNER)] = None,
    sort: overview.ListOrder = "-created_at",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """One page of the list with what people look for first."""
    wanted = overview.ListFilter(ExperimentFilter(text, status, tag, owner, among=caller.experiments), sort, page)

    async def make() -> Cached[bytes]:
        return cached_bytes(0, await context.lanes.courses.run(render_page, wanted))

    made = await context.cache.within((Subject.LIST, wanted), _FRESH_SECONDS, make)
    etag = etag_of_content(made.content)
    if etags.matches(if_none_match, etag):
        return etags.not_modified(etag)
    return Response(made.content, headers={"ETag": etag, "Cache-Control": "no-cache"}, media_type="application/json")
