"""The instance: what happened to it and not to one experiment of it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from service.application.reads import instance_log
from service.domain import LogEntry
from service.web.api.body import StrictRoute
from service.web.api.instance_schemas import LogPage
from service.web.api.listings import Listing
from service.web.api.parameters import ContextOf, PageSize, PageToken
from service.web.api.views import time_text
from service.web.problems import documented
from service.web.response_pieces import sent_in_pieces

router = APIRouter(prefix="/v1/log", tags=["instance"], route_class=StrictRoute)


def _entry_view(entry: LogEntry) -> dict[str, Any]:
    details: dict[str, Any] = dict(entry.details)
    details["created_at"] = time_text(details["created_at"])
    return {"id": entry.number, "kind": entry.kind, "at": time_text(entry.at), "details": details}


@router.get("", response_model=LogPage, responses=documented(422, 503))
async def list_log(context: ContextOf, before: PageToken, page_size: PageSize = 20) -> Response:
    """What happened to the instance, newest first: which experiments were deleted."""
    found = await instance_log.log_page(context, before=before, limit=page_size + 1)
    listing: Listing[LogEntry] = Listing("entries", _entry_view, lambda entry: entry.number)
    return sent_in_pieces(listing.page(found, page_size))
