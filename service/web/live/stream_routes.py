"""Watch: the newest recommendation, sent again whenever it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from service.application.context import Context
from service.domain import ExperimentVersion
from service.domain.callers import Access
from service.errors import BestArmError
from service.web.api.body import StrictRoute
from service.web.api.parameters import CallerOf, ContextOf, ExperimentKey
from service.web.live import rendered_recommendation
from service.web.problems import documented
from service.web.response_pieces import in_pieces

router = APIRouter(prefix="/v1/experiments/{key}", tags=["recommendation"], route_class=StrictRoute)
HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a proxy that buffers would hold the changes back
}
RETRY = b"retry: 1000\n\n"
STILL_HERE = b": nothing new\n\n"


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses=documented(404, 429, 503)
    | {200: {"description": "One event on every change, at most two a second.", "content": {"text/event-stream": {}}}},
)
async def stream(context: ContextOf, caller: CallerOf, key: ExperimentKey) -> Response:
    """Server-sent events: the recommendation now, and again on every change of version. The event's id is the version."""
    context.streams.require_place(caller)
    version = await context.versions.current(key)
    return StreamingResponse(_events(context, Access(caller, key), version), headers=HEADERS, media_type="text/event-stream")


async def _events(context: Context, access: Access, version: ExperimentVersion) -> AsyncIterator[bytes]:
    yield RETRY
    sent, key = 0, access.key
    try:
        with context.streams.one_of(access.caller):
            async with aclosing(context.watcher.follow(key, version)) as versions:
                async for newest in versions:
                    made = None
                    # What was sent last may have been newer than what was asked for.
                    if newest is not None and newest.number > sent:
                        made = await rendered_recommendation.recommendation(context, key, newest)
                        sent = made.version
                    # After what may have taken long: nothing is shown to a key that was revoked meanwhile, or has expired.
                    await context.callers.require_still_taken(access.caller)
                    if newest is None:
                        yield STILL_HERE
                    elif made is not None:
                        async for piece in in_pieces(made.content, b"id: %d\ndata: " % made.version, b"\n\n"):
                            yield piece
    except BestArmError:
        return  # the viewer comes back and is told why it cannot watch
