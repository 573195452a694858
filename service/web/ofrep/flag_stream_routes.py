"""Watch the flags: a page is told when to evaluate them again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from service.application.context import Context
from service.application.live import flag_changes
from service.domain.callers import Caller
from service.errors import BestArmError
from service.web.api.body import StrictRoute
from service.web.api.parameters import CallerOf, ContextOf
from service.web.live.stream_routes import HEADERS, RETRY, STILL_HERE
from service.web.ofrep.evaluation_routes import RESPONSES

router = APIRouter(prefix="/ofrep/v1", tags=["OpenFeature"], route_class=StrictRoute)
_STREAM: dict[str, Any] = {"description": "One event when a flag was changed.", "content": {"text/event-stream": {}}}
_RESPONSES: dict[int | str, dict[str, Any]] = {200: _STREAM, **{status: RESPONSES[status] for status in (400, 401, 403, 500)}}


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses=_RESPONSES,
)
async def stream_flags(
    context: ContextOf,
    caller: CallerOf,
    token: Annotated[str | None, Query(max_length=200, description="From `eventStreams` of a bulk evaluation.")] = None,  # noqa: ARG001 - it says who the caller is
    since: Annotated[str | None, Query(max_length=200, description="From there, too: what was evaluated.")] = None,
    last_event_id: Annotated[str | None, Header(description="Where a connection that broke had got to.")] = None,
) -> Response:
    """Server-sent events: `refetchEvaluation` when a flag that opted in was concluded, paused, changed, or opted in or out.

    Where there is no place for now the stream is empty and says when to come back (`retry`): browsers give up on other answers.
    """
    context.flag_streams.require_place(caller)
    known = await flag_changes.state_of_flags(context, caller.experiments)  # whatever changes from here on is heard
    events = _events(context, caller, known, has_missed=(last_event_id or since) not in {None, "", known})
    return StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")


async def _events(context: Context, caller: Caller, known: str, *, has_missed: bool) -> AsyncIterator[bytes]:
    yield RETRY
    # An id alone is no event. A page keeps it and names it when it comes back, so that it hears of what it has missed.
    yield _refetch(known) if has_missed else b"id: %b\n\n" % known.encode()
    try:
        with context.flag_streams.one_of(caller):
            async with aclosing(flag_changes.follow(context, caller, known)) as changes:
                async for change in changes:
                    if change is None:
                        yield STILL_HERE
                    else:
                        yield _refetch(change)
    except BestArmError:
        return  # the page comes back


def _refetch(state: str) -> bytes:
    return b'event: message\nid: %b\ndata: {"type": "refetchEvaluation"}\n\n' % state.encode()
