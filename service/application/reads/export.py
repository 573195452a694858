"""Export: all draws, observations, events or points of the course of an experiment, as of one version, as a stream.

Rows come in ascending order of their sequence numbers, so whoever has some of them goes on after the last. Nothing of SQLAlchemy
or of the inference is imported here: an export runs in a process of its own, which should hold little more than its rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from service.errors import ArmNotFound, ExperimentNotFound, ExperimentPruned
from service.storage.row_streams import export_queries
from service.storage.row_streams.as_of import AsOf
from service.storage.row_streams.held_course import held_course

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.domain import Progress
    from service.storage.row_streams.held_course import HeldCourse
    from service.storage.row_streams.row_snapshot import Row, RowSnapshot
    from service.storage.row_streams.row_source import RowSource

Exported: TypeAlias = Literal["assignments", "observations", "events", "history"]
EXPORTED: tuple[Exported, ...] = get_args(Exported)


class ExportOrder(msgspec.Struct, frozen=True):
    """What is to be exported: of which experiment, beginning after which sequence number, of which time and arm."""

    key: str
    of: Exported
    after: int = 0
    since: int | None = None
    until: int | None = None
    arm: str | None = None


@dataclass(frozen=True, slots=True)
class Export:
    """An experiment as of one version, and which rows of it are wanted."""

    as_of: AsOf
    order: ExportOrder
    progress: Progress
    arm_keys: list[str]
    """By position."""
    arm: int | None
    """The position of the only arm that is wanted; None means all."""
    wanted: range
    """The numbers of the draws, or of the events, that are wanted."""
    course: HeldCourse | None
    """What the course is made of, if that is wanted."""

    def batches(self) -> AsyncIterator[Sequence[Row]]:
        """Assignments, observations or events as they were stored, a bounded number at once."""
        of = self.order.of
        if of == "assignments":
            return self.as_of.assignments(self.wanted, self.arm)
        return (self.as_of.observations if of == "observations" else self.as_of.events)(self.wanted, self.arm)


async def _sequences(rows: RowSnapshot, progress: Progress, order: ExportOrder) -> range:
    """The sequence numbers that are wanted."""
    e, last = progress.experiment.id, progress.version
    first, end = order.after + 1, last + 1
    if order.since is not None:
        first = max(first, await export_queries.first_event(rows, e, order.since, last))
    if order.until is not None:
        end = await export_queries.first_event(rows, e, order.until, last)
    return range(first, end)


async def _draws(rows: RowSnapshot, progress: Progress, order: ExportOrder) -> range:
    """The draws that are wanted; sequence numbers and times grow with them."""
    e, last = progress.experiment.id, progress.draws
    first, end = 1, last + 1
    if order.after:
        first = await export_queries.first_draw(rows, e, "sequence", order.after + 1, last)
    if order.since is not None:
        first = max(first, await export_queries.first_draw(rows, e, "created_at", order.since, last))
    if order.until is not None:
        end = await export_queries.first_draw(rows, e, "created_at", order.until, last)
    return range(first, end)


@asynccontextmanager
async def opened_export(source: RowSource, order: ExportOrder) -> AsyncIterator[Export]:
    """The export of an experiment as it is now, until the block ends."""
    with ExitStack() as kept:
        async with source.connection() as connection:
            async with connection.snapshot() as rows:
                progress = await export_queries.progress_of(rows, order.key)
                if progress is None:
                    raise ExperimentNotFound(order.key)
                pruned = progress.experiment.pruned_at is not None
                if pruned and await export_queries.is_being_pruned(rows, progress.experiment.id):
                    raise ExperimentPruned(order.key)
                keys = await export_queries.arm_keys(rows, progress.experiment.id)
                if order.arm is not None and order.arm not in keys:
                    raise ArmNotFound(order.key, order.arm)
                wanted = await (_draws if order.of == "assignments" else _sequences)(rows, progress, order)
                course = None
                if order.of == "history":
                    course = kept.enter_context(held_course())
                    await course.read(rows, progress.experiment.id, wanted)
            arm = None if order.arm is None else keys.index(order.arm)
            yield Export(AsOf(connection, progress), order, progress, keys, arm, wanted, course)
