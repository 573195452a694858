"""Watch: the newest recommendation, sent again whenever it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from service.application.context import Context
from service.domain import ExperimentVersion
from service.errors import BestArmError
from service.web.api.body import StrictRoute
from service.web.api.parameters import ContextOf, ExperimentKey
from service.web.live import rendered_recommendation
from service.web.problems import documented

router = APIRouter(prefix="/v1/experiments/{key}", tags=["recommendation"], route_class=StrictRoute)
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a proxy that buffers would hold the changes back
}
_RETRY = b"retry: 1000\n\n"
_STILL_HERE = b": nothing new\n\n"


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses=documented(404, 503)
    | {200: {"description": "One event on every change, at most two a second.", "content": {"text/event-stream": {}}}},
)
async def stream(context: ContextOf, key: ExperimentKey) -> Response:
    """Server-sent events: the recommendation now, and again on every change of version. The event's id is the version."""
    version = await context.versions.current(key)
    return StreamingResponse(_events(context, key, version), headers=_HEADERS, media_type="text/event-stream")


async def _events(context: Context, key: str, version: ExperimentVersion) -> AsyncIterator[bytes]:
    yield _RETRY
    sent = 0
    try:
        async with aclosing(context.watcher.follow(key, version)) as versions:
            async for newest in versions:
                if newest is None:
                    yield _STILL_HERE
                elif newest.number > sent:  # what was sent last may have been newer than what was asked for
                    made = await rendered_recommendation.recommendation(context, key, newest)
                    sent = made.version
                    yield b"id: %d\ndata: %b\n\n" % (made.version, made.content)
    except BestArmError:
        return  # the viewer comes back and is told why it cannot watch
