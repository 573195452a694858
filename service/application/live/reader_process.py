"""The other side of a lane: a process that does one read or change after the other, with connections and a cache of its own."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, TypeAlias, TypeVar, cast

from service.application.live.reader import WritingReader
from service.application.live.version_cache import VersionCache
from service.engine import engine_metrics
from service.engine.writer import Writer
from service.errors import BestArmError
from service.storage.database import Database

Result = TypeVar("Result")
Read: TypeAlias = Callable[Concatenate[WritingReader, ...], Awaitable[Result]]

# Below the workers, whose asks and tells must not wait for it.
_NICENESS = 5
# What was computed from a version is needed again for the next picture of it, and seldom after that.
_CACHE_BYTES = 32 * 1024 * 1024
# One change at a time; one that has many parts queues the next while the last is written.
_QUEUED = 4
# The arms of a large experiment are tens of thousands of objects, and none of them is garbage before the read ends.
_ALLOCATIONS_PER_COLLECTION = 200_000


class ReadFailed(Exception):  # noqa: N818 - a defect of ours, told as the text of its traceback
    """Something went wrong that should not have. Other processes' exceptions cannot all travel; their texts can."""


class _Process:
    """Its event loop and what its reads need."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._reader = self._runner.run(_opened(url))

    def perform(self, read: Read[Result], arguments: tuple[object, ...]) -> Result:
        """One read, to its end."""
        return self._runner.run(cast("Coroutine[Any, Any, Result]", read(self._reader, *arguments)))

    def settle(self) -> None:
        """Let the event loop come round."""
        self._runner.run(asyncio.sleep(0))


async def _opened(url: str) -> WritingReader:
    # Between two reads the event loop stands still and hears no goodbye: the connection is asked each time.
    database = Database(url, pool_size=1, trusted_seconds=0)
    writer = Writer(database, queue_limit=_QUEUED)
    writer.start()
    return WritingReader(database, VersionCache(_CACHE_BYTES), writer)


_process: _Process


def begin(url: str) -> None:
    """Called first in the new process."""
    global _process  # noqa: PLW0603 - the process has one, and its pool calls plain functions only
    # The worker says when to end. A signal to the whole group must not cut off the answers that it is still giving.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(_NICENESS)
    engine_metrics.keep_for_worker()
    _process = _Process(url)
    _collect_less_often()


def _collect_less_often() -> None:
    """What has been imported stays for good: each search for garbage would go through it again, several times a read."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)


def _end_with_parent() -> None:
    """A worker that was killed cannot say anything."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def take_metrics() -> list[engine_metrics.DoneGroup]:
    """What the changes of this process add to the worker's numbers; they are counted just after they are answered."""
    _process.settle()
    return engine_metrics.take_kept()


def perform(read: Read[Result], arguments: tuple[object, ...]) -> Result:
    """One read in this process."""
    try:
        return _process.perform(read, arguments)
    except BestArmError:
        raise
    except Exception as failure:  # noqa: BLE001 - whatever it is, it is told
        raise ReadFailed("".join(traceback.format_exception(failure))) from None
