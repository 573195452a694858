"""The instance: what happened to it and not to one experiment of it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from service.application.reads.page_request import PageRequest
from service.web.api.body import StrictRoute
from service.web.api.instance_schemas import LogPage
from service.web.api.parameters import ContextOf, PageSize, PageToken, Window
from service.web.api.rendered_pages import render_log
from service.web.problems import documented
from service.web.response_pieces import sent_in_pieces

router = APIRouter(prefix="/v1/log", tags=["instance"], route_class=StrictRoute)


@router.get("", response_model=LogPage, responses=documented(422, 503))
async def list_log(context: ContextOf, before: PageToken, window: Window, page_size: PageSize = 20) -> Response:
    """What happened to the instance, newest first: which experiments were deleted.

    A page looks at a bounded number of entries: of a time it may hold fewer than asked for, or none, while `next_page_token`
    says that there is more to look at.
    """
    page = PageRequest(before, page_size, window)
    if page.is_long:
        return sent_in_pieces(await context.lanes.present.run(render_log, page))
    return sent_in_pieces(await render_log(context, page))
