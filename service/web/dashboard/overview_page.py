"""A page of the list at a glance as JSON, each experiment computed once per version: performed in a lane's process."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from service.application.live import cached_reads
from service.application.live.version_cache import Cached, Subject
from service.application.reads import forecast, list_traffic, overview
from service.errors import BestArmError
from service.web.api import views
from service.web.dashboard.overview_order import OF_TRAFFIC, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.live.reader import Reader
    from service.application.reads.list_traffic import Traffic
    from service.application.reads.recommendation import Recommendation
    from service.domain import Arm, ExperimentVersion
    from service.web.dashboard.overview_order import Row

# Traffic may lag behind the numbers beside it.
_TRAFFIC_SECONDS = 10.0
_SPARKLINE_POINTS = 40
# A forecast takes a tenth of a second and tells a date: it may be old, and few are made at a time.
_FORECAST_SECONDS = 60.0
_FORECASTING_SECONDS = 0.25
# A page that took so long already, because a process has just begun, is shown without further ones.
_RENDERING_SECONDS = 1.0
_LABELS_SECONDS = 5.0
# What a row takes in memory, about.
_BYTES = 2_000


async def render_page(reader: Reader, wanted: overview.ListFilter) -> bytes:
    """One page of the list with what people look for first."""
    began = time.monotonic()
    found = await overview.find(reader, wanted)
    versions = dict(found.found)
    rows: list[Row] = [await _row(reader, key, version) for key, version in found.found]
    if wanted.order.removeprefix("-") in OF_TRAFFIC:
        rows = [row | await _traffic(reader, row, versions[row["key"]]) for row in rows]
    rows = in_order(rows, wanted.order)
    if found.unranked:
        skipped = (wanted.page - 1) * overview.PAGE
        rows = rows[skipped : skipped + overview.PAGE]
    rows = [row | await _traffic(reader, row, versions[row["key"]]) for row in rows]
    forecasts = await _forecasts(reader, rows, versions, time_left=_RENDERING_SECONDS - (time.monotonic() - began))
    among = wanted.filter.among
    labels = partial(_labels, reader, among)
    tags, owners = (await reader.cache.within((Subject.LIST_LABELS, among), _LABELS_SECONDS, labels)).content
    content = {
        "page": wanted.page,
        "page_size": overview.PAGE,
        "total": found.total,
        "counts": found.counts,
        "tags": tags,
        "owners": owners,
        "ordered": "page" if wanted.is_computed and not found.unranked else "all",
        "experiments": [row | {"forecast": forecasts.get(row["key"])} for row in rows],
    }
    return views.encode(content)


async def _row(reader: Reader, key: str, version: ExperimentVersion) -> dict[str, Any]:
    async def make() -> Cached[dict[str, Any]]:
        recommendation = await cached_reads.recommendation(reader, key, version)
        return Cached(recommendation.progress.version, _row_view(recommendation), _BYTES)

    return (await reader.cache.at_least((Subject.LIST_ROW, version.experiment), version.number, make)).content


def _row_view(recommendation: Recommendation) -> dict[str, Any]:
    """Whatever a row says of an arm, it says of one: what is served, else what may be taken, else what leads."""
    standings, verdict = recommendation.standings, recommendation.verdict
    progress, experiment = recommendation.progress, recommendation.progress.experiment
    arm = recommendation.best if verdict.arm is None else standings[verdict.arm].arm
    own = None if arm is None else standings[arm.position]
    return {
        "key": experiment.key,
        "name": experiment.name,
        "status": experiment.status,
        "tags": experiment.tags,
        "owner": experiment.owner,
        "verdict": views.verdict_view(verdict, standings),
        "arm": None if arm is None else _arm_view(arm),
        "control": None if experiment.control is None else _arm_view(standings[experiment.control].arm),
        "lift": None if own is None or own.lift is None else asdict(own.lift),
        "harmful": [one.arm.name or one.arm.key for one in standings if one.harmful],
        "share": None if own is None else own.share,
        "reward": views.reward_view(experiment.reward),
        "arms": len(standings),
        "draws": sum(one.draws for one in standings),
        "observations": sum(one.observations for one in standings),
        "created_at": views.time_text(experiment.created_at),
        "as_of": views.time_text(progress.as_of),
        "version": progress.version,
    }


def _arm_view(arm: Arm) -> dict[str, Any]:
    return {"key": arm.key, "name": arm.name, "position": arm.position}


async def _traffic(reader: Reader, row: Row, version: ExperimentVersion) -> dict[str, Any]:
    arm = None if row["arm"] is None else row["arm"]["position"]

    async def make() -> Cached[Traffic]:
        found = await list_traffic.traffic(reader, row["key"], arm, _SPARKLINE_POINTS)
        return Cached(found.version, found, _BYTES)

    # With the arm, so that the line is never another arm's than the name beside it.
    subject = (Subject.LIST_TRAFFIC, version.experiment, arm)
    made = reader.cache.newest(subject)
    if made is None or (made.version < version.number and made.age > _TRAFFIC_SECONDS):
        made = await reader.cache.at_least(subject, version.number, make)
    known: Traffic = made.content
    return {
        "started_at": views.time_text(known.started_at),
        "rate_per_day": known.rate_per_day,
        "sparkline": [round(share, 4) for share in known.shares],
    }


async def _forecasts(
    reader: Reader, rows: Sequence[Row], versions: dict[str, ExperimentVersion], *, time_left: float
) -> dict[str, Any]:
    """What is known of when each verdict will be there; some of what is not, or is old, is computed now, the upper rows first."""
    until, known = time.monotonic() + min(time_left, _FORECASTING_SECONDS), {}
    for row in rows:
        if row["status"] != "running" or row["verdict"]["state"] != "leading":
            continue
        version = versions[row["key"]]
        subject = (Subject.LIST_FORECAST, version.experiment)
        made = reader.cache.newest(subject)
        is_old = made is None or (made.version < version.number and made.age > _FORECAST_SECONDS)
        if is_old and time.monotonic() < until:
            made = await reader.cache.at_least(subject, version.number, partial(_forecast, reader, row["key"], version))
        if made is not None:
            known[row["key"]] = made.content
    return known


async def _forecast(reader: Reader, key: str, version: ExperimentVersion) -> Cached[dict[str, Any] | None]:
    try:
        found = await forecast.outlook(reader, key)
    except BestArmError:  # too early, or too many arms: there is none for this version
        return Cached(version.number, None, _BYTES)
    return Cached(found.version, views.forecast_view(found), _BYTES)


async def _labels(reader: Reader, among: tuple[str, ...] | None) -> Cached[tuple[list[str], list[str]]]:
    return Cached(0, await overview.tags_and_owners(reader, among), _BYTES)
