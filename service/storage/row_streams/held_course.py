"""What the course of an experiment is made of, set aside: its points take long to compute, and thinning may remove snapshots."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.storage import settings_rows
from service.storage.row_streams import export_queries
from service.storage.row_streams.scratch_file import scratch_file

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from service.domain import ArmRecord, Snapshot
    from service.storage.row_streams.row_snapshot import RowSnapshot


class HeldCourse:
    """The arms of one moment, and the snapshots up to then."""

    def __init__(self, kept: sqlite3.Connection) -> None:
        self._kept = kept
        self.records: list[ArmRecord] = []

    async def read(self, rows: RowSnapshot, experiment_id: int, sequences: range) -> None:
        """Set aside what there is: the arms, and the snapshots of these versions."""
        self.records = await export_queries.arm_records(rows, experiment_id)
        async for few in export_queries.snapshots(rows, experiment_id, sequences):
            stored = ((row["sequence"], row["at"], row["body"]) for row in few)
            self._kept.executemany("INSERT INTO kept VALUES (?, ?, ?)", stored).close()

    def snapshots(self) -> Iterator[Snapshot]:
        """The snapshots, oldest first."""
        for row in self._kept.execute("SELECT * FROM kept ORDER BY sequence"):
            yield settings_rows.snapshot_from(row)


@contextmanager
def held_course() -> Iterator[HeldCourse]:
    """Room for one, until the block ends."""
    with scratch_file("sequence INTEGER PRIMARY KEY, at, body") as kept:
        yield HeldCourse(kept)
