"""The course as an export has it: every snapshot, and the present, as the recommendation would have told it then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from service.application.reads.course import point_of
from service.engine.ledger import Ledger
from service.engine.snapshots import snapshot_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.application.reads.course import Point
    from service.application.reads.export import Export
    from service.storage.row_streams.held_course import HeldCourse


def exported_points(export: Export, course: HeldCourse) -> Iterator[Point]:
    """The points that are wanted, oldest first; the last one is now."""
    progress, wanted = export.progress, export.wanted
    ledger = Ledger(replace(progress, uncounted=()), progress.counted(course.records))
    for stored in course.snapshots():
        if stored.sequence < progress.version:
            yield point_of(ledger.experiment, ledger.arms, stored)
    if progress.version in wanted:
        yield point_of(ledger.experiment, ledger.arms, snapshot_of(ledger))
