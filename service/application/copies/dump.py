"""Dump: all rows of an experiment into a file, from one snapshot, while traffic goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

from service import __version__
from service.application.copies.dump_file import DumpWriter, Header
from service.errors import ExperimentNotFound
from service.storage import experiment_copies
from service.storage.migrate import head
from service.storage.queries import stored_experiments
from service.storage.tables import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.storage.database import Database


async def dump(database: Database, key: str, file: IO[bytes], report: Callable[[int, int], None]) -> int:
    """Write the file; how many rows it has. `report` is told how many are done, and about how many there are."""
    async with database.reading() as connection:
        progress = await stored_experiments.progress_by_key(connection, key)
        if progress.experiment.status in HIDDEN:
            raise ExperimentNotFound(key)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        writer = DumpWriter(file, Header(__version__, head(), key, progress.version, now))
        done, total = 0, progress.version + progress.draws
        for table in experiment_copies.TABLES:
            writer.begin_table(table, experiment_copies.columns_of(table))
            async for rows in experiment_copies.rows_of(connection, table, progress.experiment.id):
                writer.add_rows(rows)
                done += len(rows)
                report(min(done, total), total)
        writer.finish()
    return done
