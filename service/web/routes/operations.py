"""Is it alive, is it ready."""

from __future__ import annotations

from fastapi import APIRouter, Response

from service import __version__
from service.application import looks
from service.web.problems import documented
from service.web.requests import ContextOf, json_response

router = APIRouter(tags=["operations"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok", "version": __version__}


@router.get("/readyz", responses=documented(503))
async def readyz(context: ContextOf) -> Response:
    """The database answers and has the newest schema."""
    await looks.require_ready(context.database)
    return json_response({"status": "ready", "version": __version__})
