"""Lanes: reads and changes whose cost the caller can choose run in processes of their own, few at once; a bounded number waits.

Threads would not do: an expensive read is Python and numpy under the one interpreter lock, and every probe, ask and tell of the
worker would queue for that lock. A reader process has its own interpreter, its own connection and a lower priority; what comes
back is bytes to send. It is started by the first read that needs it. A change is made there as another worker would make it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from service.application.live import reader_process
from service.application.live.export_lane import ExportLane
from service.application.live.turns import Turns
from service.domain.limits import MOST_WAITING_READS
from service.engine import engine_metrics
from service.errors import Overloaded

if TYPE_CHECKING:
    from service.application.live.known_callers import KnownCallers
    from service.application.live.reader_process import Read
    from service.domain.callers import Caller
    from service.storage.database import Database

Result = TypeVar("Result")


class Lane:
    """One reader process, one read at a time in it, and those that wait for their turn."""

    def __init__(self, database: Database, most_waiting: int = MOST_WAITING_READS, *, changes: bool = False) -> None:
        self._database, self._most_waiting, self._changes = database, most_waiting, changes
        self._executor: ProcessPoolExecutor | None = None
        self._inside = 0

    async def run(self, read: Read[Result], *arguments: object) -> Result:
        """What the read gives; `Overloaded` if too many wait already."""
        if self._inside > self._most_waiting:
            raise Overloaded("Too many expensive requests wait already; try again in a moment.")
        self._inside += 1
        executor = self._executor = self._executor or self._new_executor()
        try:
            # Not here, because the first one starts the process.
            future: Future[Result] = await asyncio.to_thread(executor.submit, reader_process.perform, read, arguments)
            result = await asyncio.wrap_future(future)
        except BrokenProcessPool as ended:  # killed, for its memory perhaps: the next read starts another
            if self._executor is executor:
                self._executor = None
            raise Overloaded("The process for expensive requests has ended; try again in a moment.") from ended
        finally:
            self._inside -= 1
        if self._changes:
            with suppress(RuntimeError):  # it is being closed; what was done is done
                executor.submit(reader_process.take_metrics).add_done_callback(_count)  # when its turn comes: nobody waits
        return result

    def _new_executor(self) -> ProcessPoolExecutor:
        # Spawned: a forked process would share the event loop's sockets and the locks of its threads.
        spawned = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, spawned, initializer=reader_process.begin, initargs=(self._database.url,))

    async def close(self) -> None:
        """End the process, after the read that it is at."""
        executor, self._executor = self._executor, None
        if executor is not None:
            await asyncio.to_thread(executor.shutdown, wait=True, cancel_futures=True)


class ChangeLane:
    """The lane of changes. A caller whose key was revoked while others had their turn changes nothing any more."""

    def __init__(self, database: Database, callers: KnownCallers, most_waiting: int = MOST_WAITING_READS) -> None:
        self._lane = Lane(database, changes=True)
        self._turns, self._callers = Turns(most_waiting), callers

    @property
    def is_full(self) -> bool:
        """Do so many wait that the next one is refused?"""
        return self._turns.is_full

    async def run(self, caller: Caller, change: Read[Result], *arguments: object) -> Result:
        """What the change gives, if it is still theirs to make when its turn comes; `Overloaded` if too many wait already."""
        async with self._turns:
            await self._callers.require_still_taken(caller)
            working = asyncio.ensure_future(self._lane.run(change, *arguments))
            try:
                return await asyncio.shield(working)
            finally:  # who has left keeps the turn while the process works: the next would wait there, where no key is asked for
                await asyncio.wait([working])

    async def close(self) -> None:
        """End the process, after the change that it is at."""
        await self._lane.close()


def _count(kept: Future[list[engine_metrics.DoneGroup]]) -> None:
    if not kept.cancelled() and kept.exception() is None:
        for done in kept.result():
            engine_metrics.count_group(done)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Several, so that a look at many arms does not wait behind the courses of others, and no look behind a change or a file."""

    present: Lane
    """The present of experiments with many arms: what is looked at often and takes a fraction of a second."""
    courses: Lane
    """Everything over time (history, charts, forecasts) and the list at a glance, which is made of it."""

    changes: ChangeLane
    """Large batches, and all that touches the whole of a large experiment."""

    exports: ExportLane = field(default_factory=ExportLane)
    """Files, each as long as its reader takes it."""

    @classmethod
    def over(cls, database: Database, callers: KnownCallers) -> Lanes:
        """Lanes whose processes read this database, and change it for these callers."""
        return cls(Lane(database), Lane(database), ChangeLane(database, callers))

    async def close(self) -> None:
        """End the processes."""
        self.exports.close()
        await asyncio.gather(self.present.close(), self.courses.close(), self.changes.close())
