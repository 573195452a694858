"""The course as an export has it: every snapshot, and the present, as the recommendation would have told it then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from service.application.reads.course import point_of
from service.engine.ledger import Ledger
from service.engine.snapshots import snapshot_of
from service.storage.row_streams import export_queries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from service.application.reads.course import Point
    from service.application.reads.export import Export


async def exported_points(export: Export) -> AsyncIterator[Point]:
    """The points that are wanted, oldest first; the last one is now."""
    progress = export.progress
    records = progress.counted(await export_queries.arm_records(export.rows, progress.experiment.id))
    ledger = Ledger(replace(progress, uncounted=()), records)
    wanted, now = await export.sequences(), progress.version
    async for stored in export_queries.snapshots(export.rows, progress.experiment.id, wanted):
        if stored.sequence < now:
            yield point_of(ledger.experiment, ledger.arms, stored)
    if now in wanted:
        yield point_of(ledger.experiment, ledger.arms, snapshot_of(ledger))
