"""Export: all draws, observations, events or points of the course of an experiment, from one snapshot, as a stream.

Rows come in ascending order of their sequence numbers, so whoever has some of them goes on after the last. Nothing of SQLAlchemy
or of the inference is imported here: an export runs in a process of its own, which should hold little more than its rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from service.errors import ArmNotFound, ExperimentNotFound
from service.storage.row_streams import export_queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.domain import Progress
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
    """An experiment as of one snapshot, and which rows of it are wanted."""

    rows: RowSnapshot
    order: ExportOrder
    progress: Progress
    arm_keys: list[str]
    """By position."""
    arm: int | None
    """The position of the only arm that is wanted; None means all."""

    async def batches(self) -> AsyncIterator[Sequence[Row]]:
        """Assignments, observations or events as they are stored, a bounded number at once."""
        e, of = self.progress.experiment.id, self.order.of
        if of == "assignments":
            found = export_queries.assignments(self.rows, e, await self._draws(), self.arm)
        elif of == "observations":
            found = export_queries.observations(self.rows, e, await self.sequences(), self.arm)
        else:
            found = export_queries.events(self.rows, e, await self.sequences(), self.arm)
        async for rows in found:
            yield rows

    async def sequences(self) -> range:
        """The sequence numbers that are wanted."""
        e, last, order = self.progress.experiment.id, self.progress.version, self.order
        first, end = order.after + 1, last + 1
        if order.since is not None:
            first = max(first, await export_queries.first_event(self.rows, e, order.since, last))
        if order.until is not None:
            end = await export_queries.first_event(self.rows, e, order.until, last)
        return range(first, end)

    async def _draws(self) -> range:
        """The draws that are wanted; sequence numbers and times grow with them."""
        e, last, order = self.progress.experiment.id, self.progress.draws, self.order
        first, end = 1, last + 1
        if order.after:
            first = await export_queries.first_draw(self.rows, e, "sequence", order.after + 1, last)
        if order.since is not None:
            first = max(first, await export_queries.first_draw(self.rows, e, "created_at", order.since, last))
        if order.until is not None:
            end = await export_queries.first_draw(self.rows, e, "created_at", order.until, last)
        return range(first, end)


@asynccontextmanager
async def opened_export(source: RowSource, order: ExportOrder) -> AsyncIterator[Export]:
    """The export of a snapshot that is taken now; it is held until the block ends."""
    async with source.snapshot() as rows:
        progress = await export_queries.progress_of(rows, order.key)
        if progress is None:
            raise ExperimentNotFound(order.key)
        keys = await export_queries.arm_keys(rows, progress.experiment.id)
        if order.arm is not None and order.arm not in keys:
            raise ArmNotFound(order.key, order.arm)
        yield Export(rows, order, progress, keys, None if order.arm is None else keys.index(order.arm))
