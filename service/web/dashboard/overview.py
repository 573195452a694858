"""The list at a glance, as JSON: each experiment computed once per version, the whole page at most twice a second."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, Query, Response

from service.application import overview, sharing
from service.application.context import Context
from service.application.kept import Made, made_bytes
from service.domain import ExperimentStatus
from service.web import conditional, views
from service.web.requests import ContextOf

router = APIRouter(prefix="/dashboard", include_in_schema=False)
_FRESH_SECONDS = 0.5
# A sparkline is small: it may lag behind the numbers beside it.
_SPARKLINE_SECONDS = 10.0


@router.get("/experiments")
async def list_at_a_glance(
    context: ContextOf,
    text: Annotated[str, Query(max_length=255)] = "",
    status: ExperimentStatus | None = None,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """One page of the list with what people look for first."""
    wanted = overview.Wanted(text, status, page)

    async def make() -> Made[bytes]:
        return made_bytes(0, await _render(context, wanted))

    made = await context.kept.within(("overview", wanted), _FRESH_SECONDS, make)
    etag = f'"{hashlib.blake2b(made.content, digest_size=12).hexdigest()}"'
    if conditional.matches(if_none_match, etag):
        return conditional.not_modified(etag)
    return Response(made.content, headers={"ETag": etag, "Cache-Control": "no-cache"}, media_type="application/json")


async def _render(context: Context, wanted: overview.Wanted) -> bytes:
    found = await overview.find(context, wanted)
    rows = await asyncio.gather(*(_row(context, key, version) for key, version in found.page))
    total = sum(found.counts.values()) if wanted.status is None else found.counts.get(wanted.status, 0)
    content = {"page": wanted.page, "page_size": overview.PAGE, "total": total, "counts": found.counts, "experiments": rows}
    return msgspec.json.encode(content)


async def _row(context: Context, key: str, version: int) -> dict[str, Any]:
    async def make() -> Made[bytes]:
        standing = await sharing.recommendation(context, key, version)
        leader = standing.concluded_arm or standing.best
        experiment = standing.progress.experiment
        shown = {
            "key": key,
            "name": experiment.name,
            "status": experiment.status,
            "arms": len(standing.standings),
            "leader": {"key": leader.key, "name": leader.name} if leader else None,
            "share": next((one.share for one in standing.standings if leader and one.arm.key == leader.key), None),
            "error_estimate": standing.error_estimate,
            "separated": standing.separated,
            "confidence": experiment.confidence,
            "draws": sum(one.draws for one in standing.standings),
            "observations": sum(one.observations for one in standing.standings),
            "created_at": views.time_text(experiment.created_at),
            "version": standing.progress.version,
        }
        return made_bytes(standing.progress.version, views.encode(shown))

    async def draw() -> Made[bytes]:
        seen, shares = await overview.leaders_share(context, key)
        return made_bytes(seen, views.encode([round(share, 4) for share in shares]))

    row = await context.kept.at_least(("overview row", key), version, make)
    line = context.kept.newest(("sparkline", key))
    if line is None or (line.version < version and line.age > _SPARKLINE_SECONDS):
        line = await context.kept.at_least(("sparkline", key), version, draw)
    shown: dict[str, Any] = json.loads(row.content)
    return shown | {"sparkline": msgspec.Raw(line.content)}
