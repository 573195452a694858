"""Load: an experiment from a file, there for others only when all of it is.

Its rows go in chunk by chunk beside live traffic, hidden (service/storage/experiment_copies.py). Then it is replayed, and only
then it gets its key. Whatever fails on the way, a kill included, leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import structs

from service.application.commands.delete import remove_rows
from service.application.copies.dump_rows import DumpRows
from service.application.pauses import ChunkSize, pause_after
from service.application.reads.replay import Replayed, replay_loaded
from service.domain.callers import SERVICE
from service.engine.clock import now_microseconds
from service.errors import BestArmError, InvalidValue
from service.storage import experiment_copies, operator_events, removal
from service.storage.migrate import head
from service.storage.queries import announced_events, stored_instance_log

if TYPE_CHECKING:
    from service.application.commands.experiments import Described
    from service.application.copies.dump_file import DumpFile
    from service.domain import Json
    from service.storage.database import Connection, Database

# Some milliseconds of a transaction on SQLite, where every writer waits for it. On PostgreSQL nobody does.
_SQLITE_CHUNK_SECONDS = 0.02
_POSTGRESQL_CHUNK_SECONDS = 0.2
_PAUSE = 1.0
_TOUCH_SECONDS = 20.0
# The answers to idempotency keys name the experiment by its key: under another one they would be wrong.
_OF_ITS_KEY = "replies"


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """How to load a file."""

    check_settings: Callable[[Described], None]
    """Raises where settings are such as could not be set here."""
    key: str | None = None
    """Another one than in the file."""
    whole_replay: bool = True
    """Repeat every decision? Else only what people did is followed."""
    report: Callable[[int, int], None] = lambda _done, _all: None
    """Told how much is done, and of how much: rows that are stored, and events that are replayed."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was loaded, and what replay has found of it."""

    key: str
    rows: int
    replayed: Replayed


async def load(database: Database, file: DumpFile, request: LoadRequest) -> Loaded:
    """Load the experiment; refused, with nothing left behind, if the key is taken or anything in the file cannot be."""
    _require_same_schema(file)
    rows = DumpRows(file, request.check_settings)
    chunks = rows.chunks()
    _, (own,) = next(chunks, ("", [None]))
    if own is None:
        raise InvalidValue("/file", "The experiment itself is missing.")
    row = structs.asdict(own)
    old, row["key"] = row["key"], request.key or row["key"]
    async with database.writing() as connection:
        experiment_id, tombstone = await experiment_copies.begin(connection, row, now_microseconds())
    try:
        done, total = 1, file.rows + (2 * row["version"] if request.whole_replay else row["version"])
        size = ChunkSize(_SQLITE_CHUNK_SECONDS if database.is_sqlite else _POSTGRESQL_CHUNK_SECONDS)
        for table, some in chunks:
            if request.key is None or table != _OF_ITS_KEY:
                async with pause_after(_PAUSE), database.writing() as connection:
                    locked_at = time.perf_counter()
                    await experiment_copies.touch(connection, experiment_id, now_microseconds())
                    await experiment_copies.add_rows(connection, table, experiment_id, map(structs.astuple, some))
                size.took(time.perf_counter() - locked_at)
                rows.rows_at_once = size.rows
            done += len(some)
            request.report(done, total)
        async with _touched(database, experiment_id):
            replayed = await replay_loaded(
                database,
                tombstone,
                rows.relations.progress,
                lambda checked, _: request.report(done + checked, total),
                whole=request.whole_replay,
            )
        async with database.writing() as connection:
            await _publish(connection, experiment_id, row, old, file)
    except BaseException:
        await asyncio.shield(_give_up(database, experiment_id))
        raise
    return Loaded(row["key"], done, replayed)


def _require_same_schema(file: DumpFile) -> None:
    header = file.header
    if header.migration != head():
        raise InvalidValue(
            "/file",
            f"The file is of release {header.release} (migration {header.migration}), this one is at migration {head()}: "
            "bring the database that it is from to the same release, and dump it again.",
        )


async def _publish(connection: Connection, experiment_id: int, row: dict[str, Any], old: str, file: DumpFile) -> None:
    """Give it its key, and write down where it is from; another key than it had is an event of its history."""
    key = row["key"]
    await announced_events.begin_behind(connection, experiment_id, row["version"])
    await experiment_copies.publish(connection, experiment_id, row)
    if key != old:
        progress = await removal.locked(connection, key)
        details: dict[str, Json] = {"before": {"key": old}, "after": {"key": key}}
        await operator_events.append(connection, progress, "renamed", details, now_microseconds())
    about = {"experiment": key, "loaded_from": old, "release": file.header.release, "version": row["version"]}
    about |= {"dumped_at": file.header.dumped_at, "draws": row["draws"]}
    await stored_instance_log.append(connection, "experiment_loaded", about, now_microseconds(), SERVICE)


@asynccontextmanager
async def _touched(database: Database, experiment_id: int) -> AsyncIterator[None]:
    """Go on saying that the load lives while the block runs."""

    async def go_on() -> None:
        while True:
            async with database.writing() as connection:
                await experiment_copies.touch(connection, experiment_id, now_microseconds())
            await asyncio.sleep(_TOUCH_SECONDS)

    task = asyncio.create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, BestArmError):
            await task


async def _give_up(database: Database, experiment_id: int) -> None:
    """Remove what is there of it. Where the database is away, some worker does it later."""
    with suppress(BestArmError):
        async with database.writing() as connection:
            await experiment_copies.give_up(connection, experiment_id)
        await remove_rows(database, experiment_id)
