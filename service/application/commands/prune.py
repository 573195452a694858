"""Prune: experiments that ended long ago give up their single draws, rewards and observations, beside live traffic."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.pauses import ChunkSize, pause_after
from service.domain.callers import SERVICE
from service.engine.clock import now_microseconds
from service.errors import BestArmError, ExperimentNotFound, ExperimentPruned, IllegalTransition
from service.storage import pruning, removal
from service.storage.queries import stored_experiments, stored_instance_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from service.domain import Json
    from service.storage.database import Connection, Database
    from service.storage.pruning import Prunable

_OVER = ("concluded", "archived")
# On SQLite every writer waits for a chunk, so it takes no longer than a transaction of theirs. On PostgreSQL nobody does.
_SQLITE_CHUNK_SECONDS = 0.0012
_POSTGRESQL_CHUNK_SECONDS = 0.03
_PAUSE = 4.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """An experiment that would be pruned, and what of it would go."""

    experiment: Prunable
    rows: dict[str, int]
    about_bytes: int


async def prunable(database: Database, ended_before: int, keys: Collection[str] | None) -> list[Prunable]:
    """Those that ended before this time, and those whose pruning was interrupted; each key that is named must be one of them."""
    async with database.reading() as connection:
        found = await pruning.prunable(connection, ended_before, keys)
        for key in sorted(set(keys or ()) - {one.key for one in found}):
            raise await _objection(connection, key)
    return found


async def _objection(connection: Connection, key: str) -> BestArmError:
    """Why an experiment that was named is not pruned."""
    experiment = (await stored_experiments.progress_by_key(connection, key)).experiment
    if experiment.pruned_at is not None:
        return ExperimentPruned(key)
    if experiment.status not in _OVER:
        return IllegalTransition(f"Experiment {key!r} is {experiment.status}: only concluded and archived ones are pruned.")
    return IllegalTransition(f"Experiment {key!r} ended later than that.")


async def candidates(database: Database, found: list[Prunable]) -> list[Candidate]:
    """What of each would go."""
    dialect = "sqlite" if database.is_sqlite else "postgresql"
    counted = []
    for one in found:
        async with database.reading() as connection:
            rows = await pruning.rows_to_go(connection, one.id)
        counted.append(Candidate(one, rows, pruning.about_bytes(rows, dialect)))
    return counted


async def prune(database: Database, wanted: Prunable, ended_before: int, report: Callable[[int], None]) -> int:
    """Prune one of them, or go on where it was left; how many rows went. `report` is told of each chunk."""
    if not wanted.under_way and not await _is_marked(database, wanted.key, ended_before):
        return 0
    size, removed = ChunkSize(_SQLITE_CHUNK_SECONDS if database.is_sqlite else _POSTGRESQL_CHUNK_SECONDS), 0
    while True:
        async with pause_after(_PAUSE):
            async with database.reading() as connection:
                chunk = await pruning.next_chunk(connection, wanted.id, size.rows)
            if chunk is None:
                return removed
            async with database.writing() as connection:
                locked_at = time.perf_counter()
                ours = await pruning.remove(connection, chunk)
                if ours and chunk.table is None:
                    about: dict[str, Json] = {"experiment": wanted.key, "rows": chunk.removed_before}
                    await stored_instance_log.append(connection, "experiment_pruned", about, now_microseconds(), SERVICE)
            size.took(time.perf_counter() - locked_at)
        if ours:
            removed += chunk.rows
            report(chunk.rows)


async def _is_marked(database: Database, key: str, ended_before: int) -> bool:
    """Mark it, unless it was reopened, pruned or deleted meanwhile. What is slow is read before the lock is taken."""
    with suppress(ExperimentNotFound):
        while True:
            async with database.reading() as connection:
                seen, records = await stored_experiments.experiment_by_key(connection, key)
                ended_at = await pruning.ended(connection, seen.experiment.id)
            if ended_at is None or ended_at >= ended_before:
                return False
            async with database.writing() as connection:
                progress = await removal.locked(connection, key)
                experiment = progress.experiment
                if experiment.status not in _OVER or experiment.pruned_at is not None:
                    return False
                if (experiment.id, progress.version) == (seen.experiment.id, seen.version):
                    await pruning.mark(connection, progress, records, now_microseconds())
                    return True
    return False
