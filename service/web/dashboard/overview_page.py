"""A page of the list at a glance as JSON, each experiment computed once per version: performed in a lane's process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from service.application.live import cached_reads
from service.application.live.version_cache import Cached, Subject, cached_bytes
from service.application.reads import course, overview
from service.web.api import views

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.domain import ExperimentVersion

# A sparkline is small: it may lag behind the numbers beside it.
_SPARKLINE_SECONDS = 10.0
_SPARKLINE_POINTS = 40


async def render_page(reader: Reader, wanted: overview.ListFilter) -> bytes:
    """One page of the list with what people look for first."""
    found = await overview.find(reader, wanted)
    rows = [await _row(reader, key, version) for key, version in found.page]
    total = sum(found.counts.values()) if wanted.status is None else found.counts.get(wanted.status, 0)
    content = {"page": wanted.page, "page_size": overview.PAGE, "total": total, "counts": found.counts, "experiments": rows}
    return msgspec.json.encode(content)


async def _row(reader: Reader, key: str, version: ExperimentVersion) -> dict[str, Any]:
    async def make() -> Cached[bytes]:
        standing = await cached_reads.recommendation(reader, key, version)
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
            "verdict": views.verdict_view(standing.verdict, standing.standings),
            "confidence": experiment.confidence,
            "draws": sum(one.draws for one in standing.standings),
            "observations": sum(one.observations for one in standing.standings),
            "created_at": views.time_text(experiment.created_at),
            "version": standing.progress.version,
        }
        return cached_bytes(standing.progress.version, views.encode(shown))

    async def draw() -> Cached[bytes]:
        seen, shares = await course.leaders_share(reader, key, _SPARKLINE_POINTS)
        return cached_bytes(seen, views.encode([round(share, 4) for share in shares]))

    row = await reader.cache.at_least((Subject.LIST_ROW, version.experiment), version.number, make)
    line = reader.cache.newest((Subject.SPARKLINE, version.experiment))
    if line is None or (line.version < version.number and line.age > _SPARKLINE_SECONDS):
        line = await reader.cache.at_least((Subject.SPARKLINE, version.experiment), version.number, draw)
    shown: dict[str, Any] = json.loads(row.content)
    return shown | {"sparkline": msgspec.Raw(line.content)}
