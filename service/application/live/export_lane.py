"""The lane of exports: a process for each, few at once, that is gone when its file is made or its reader is.

A file is made as fast as it is taken, and as those who ask leave room: the process waits to write while the worker does not
read, and the worker does not read while the connection is full; and it rests between two pieces while the worker says that it is
busy (export_pace.py). What is in memory is a frame here and a thousand rows there, however long the file.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from service.application.live.export_frames import LARGEST_FRAME, Frame, next_frame
from service.application.live.open_streams import OpenStreams
from service.domain.limits import MOST_EXPORTS, MOST_EXPORTS_OF_KEY
from service.errors import Overloaded

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from subprocess import Popen

    from service.domain.callers import Caller

# Below the workers, whose asks and tells go first. Of a processor that two others want as well Linux leaves it a seventh: more
# than its pace takes. At 10 it would be a twentieth, and a file took twice as long where others filled the machine (measured).
_NICENESS = 5
_LEAVING_SECONDS = 5.0
# A worker that would use more than this part of a processor has others to serve; sending a file takes a fifth of one (measured).
_BUSY = 0.5
_WAITS = Path("/proc/self/schedstat")
_LOOK_SECONDS = 0.1


class ExportBroken(Exception):  # noqa: N818 - what a reader of the file sees: it has no end
    """The process ended before the file did."""


class ExportFailed(Exception):  # noqa: N818 - a defect of ours, told as the text of its traceback
    """Something went wrong in the process that should not have."""


class RunningExport:
    """An export under way."""

    def __init__(self, process: Popen[bytes], frames: StreamReader, words: StreamWriter) -> None:
        self._process, self._frames, self._words = process, frames, words
        self._sharing = 0
        self.version = 0
        """Of the experiment, in the snapshot; known from the beginning on."""
        self.is_whole = False
        """The process has said that the file has its end."""

    async def begin(self) -> None:
        """Wait until there is a snapshot; what the process refuses is raised."""
        try:
            frame = await self._next()
        except ExportBroken as ended:  # killed, for its memory perhaps
            raise Overloaded("The process of the export has ended; try again in a moment.") from ended
        if frame.kind == "refused":
            raise pickle.loads(frame.content)  # noqa: S301 - it comes from a process of our own
        self.version = int(frame.content)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes of the file; ExportBroken if it has no end."""
        while (frame := await self._next()).kind == "piece":
            yield frame.content
        if frame.kind == "refused":
            raise ExportBroken(str(pickle.loads(frame.content)))  # noqa: S301 - as above
        self.is_whole = True

    def tell(self, sharing: int) -> None:
        """So many exports share what a busy worker leaves them; 0: it is not busy."""
        if sharing != self._sharing and not self._words.is_closing():
            self._sharing = sharing
            self._words.write(bytes([sharing]))

    def end(self) -> None:
        """Nobody wants the rest."""
        self._process.kill()

    def wait(self) -> None:
        """Until the process is gone: one that has done its work has a moment to leave by itself."""
        if self.is_whole:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVING_SECONDS)
        self._process.kill()
        self._process.wait()

    async def _next(self) -> Frame:
        try:
            frame = await next_frame(self._frames)
        except (asyncio.IncompleteReadError, ConnectionError) as gone:
            raise ExportBroken("The process of the export has ended.") from gone
        if frame.kind == "failed":
            raise ExportFailed(frame.content.decode())
        return frame


def busy_seconds() -> float:
    """For how long this worker has worked, or would have if others had left it a processor (which only Linux tells)."""
    waited = 0.0
    with suppress(OSError, IndexError):
        waited = int(_WAITS.read_text().split()[1]) / 1e9
    return time.process_time() + waited


def is_busy(seconds: float, busy: float) -> bool:
    """Has a worker that was busy for so long of this time others to serve than a reader?"""
    return busy > _BUSY * seconds


class ExportLane:
    """The exports of one worker."""

    def __init__(self, most: int = MOST_EXPORTS, most_of_key: int = MOST_EXPORTS_OF_KEY) -> None:
        self._places = OpenStreams(most, most_of_key, "exports")
        self._running: set[RunningExport] = set()

    @asynccontextmanager
    async def run(self, caller: Caller, program: str, order: bytes) -> AsyncIterator[RunningExport]:
        """An export by this module, which is given the order; when the block ends, however it ends, the process is gone."""
        with self._places.one_of(caller):
            async with _process(program, order) as export:
                self._running.add(export)
                watch = asyncio.create_task(self._tell_of_worker(export))
                try:
                    await export.begin()
                    yield export
                finally:
                    watch.cancel()
                    self._running.discard(export)

    async def _tell_of_worker(self, export: RunningExport) -> None:
        """Whether the worker is busy, as long as the export goes on."""
        while True:
            at, busy = time.monotonic(), busy_seconds()
            await asyncio.sleep(_LOOK_SECONDS)
            export.tell(len(self._running) if is_busy(time.monotonic() - at, busy_seconds() - busy) else 0)

    def close(self) -> None:
        """End whatever is still under way."""
        for export in self._running:
            export.end()


@asynccontextmanager
async def _process(program: str, order: bytes) -> AsyncIterator[RunningExport]:
    """A process with an order, until the block ends. It ends by itself where nobody holds the other end of its socket."""
    ours, its = socket.socketpair()
    with its:  # closed here once the process has it: then the process alone keeps that end open
        frames, orders = await asyncio.open_connection(sock=ours, limit=LARGEST_FRAME)
        try:
            orders.write(order)
            process = await asyncio.to_thread(_started, program, its)
        except BaseException:
            orders.transport.abort()
            raise
    export = RunningExport(process, frames, orders)
    try:
        yield export
    finally:
        await asyncio.shield(asyncio.to_thread(export.wait))
        orders.transport.abort()


def _started(program: str, its: socket.socket) -> Popen[bytes]:
    """The process, with its end of the socket for input and output.

    It is modest from its first step on, and finds modules where the worker does, not where it happens to stand (-P). Where Linux
    shares processors between sessions first (autogroup), a niceness counts within one only, and the database is in others: so it
    has a session of its own, which is modest as a whole.
    """
    steps = f"import os, sys; os.nice({_NICENESS}); sys.path[:] = {sys.path!r}; from {program} import main; main()"
    command = [sys.executable, "-P", "-c", steps]
    process = subprocess.Popen(command, stdin=its.fileno(), stdout=its.fileno(), start_new_session=True)  # noqa: S603 - our own
    with suppress(OSError):  # elsewhere there are no such groups
        Path(f"/proc/{process.pid}/autogroup").write_text(str(_NICENESS))
    return process
