"""Is it alive, is it ready, how busy is it."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from service import __version__
from service.application.reads import readiness
from service.web.api.body import StrictRoute
from service.web.api.parameters import ContextOf, json_response
from service.web.problems import documented
from service.web.request_metrics import MEDIA_TYPE, exposition, show_requests_by_key

router = APIRouter(tags=["operations"], route_class=StrictRoute)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok", "version": __version__}


@router.get("/readyz", responses=documented(503))
async def readyz(context: ContextOf) -> Response:
    """The database answers and has a schema that this release may use."""
    await readiness.require_ready(context.database)
    return json_response({"status": "ready", "version": __version__})


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics() -> Response:
    """Counters and histograms of all workers of this host, for Prometheus."""
    await show_requests_by_key()
    return Response(await asyncio.to_thread(exposition), media_type=MEDIA_TYPE)
