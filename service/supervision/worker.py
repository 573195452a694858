"""A worker as its supervisor sees it: a spawned process, what it is at, and how long nothing was heard of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Literal, TypeAlias

import structlog

from service.supervision import worker_process
from service.supervision.worker_process import CLOSING_SECONDS, HELD_SIGNALS, SERVE, SERVING, STACK_SIGNAL

if TYPE_CHECKING:
    import socket
    from multiprocessing.connection import Connection

    import uvicorn

log = structlog.get_logger(__name__)
Stage: TypeAlias = Literal["loading", "standby", "starting", "serving", "stopping"]
# Importing everything takes a second or two of processor time; on a host that is busy with something else, very much longer.
_LOADING_SECONDS = 120.0
# Opening the database and the sockets. One that is away is given up on sooner.
_STARTING_SECONDS = 60.0
# A killed process that is still there by then is the system's to explain.
_ENDING_SECONDS = 2.0
_STACK_SECONDS = 0.3
_STACK_BYTES = 65_536


class Worker:
    """Spawned, because a forked process would share the locks and sockets of this one; OSError where there is no room for one."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], hang_seconds: float) -> None:
        spawned = multiprocessing.get_context("spawn")
        self.stage: Stage = "loading"
        with ExitStack() as on_failure:

            def pipe() -> tuple[Connection, Connection]:
                read, write = spawned.Pipe(duplex=False)
                return on_failure.enter_context(read), on_failure.enter_context(write)

            self.beats, beats = pipe()
            orders, self._orders = pipe()
            self._stacks, stacks = pipe()
            self._process = spawned.Process(target=worker_process.run, args=(config, sockets, beats, orders, stacks))
            with _held_signals():
                self._process.start()
            on_failure.pop_all()
        for end in (beats, orders, stacks):
            end.close()
        for own in (self.beats, self._stacks):
            os.set_blocking(own.fileno(), False)
        self.pid: int = self._process.pid or 0
        self.sentinel: int = self._process.sentinel
        self._is_ordered, self._is_killed, self._silent_seconds = False, False, 0.0
        self._serving_since: float | None = None
        stopping = (config.timeout_graceful_shutdown or 0) + CLOSING_SECONDS
        self._patience: dict[Stage, float] = {
            "loading": _LOADING_SECONDS,
            "standby": hang_seconds,
            "starting": _STARTING_SECONDS,
            "serving": hang_seconds,
            "stopping": stopping,
        }

    def listen(self, elapsed_seconds: float) -> None:
        """Hear what it said in the time that passed, or that it said nothing."""
        heard = _drained(self.beats)
        self._silent_seconds = 0.0 if heard else self._silent_seconds + elapsed_seconds
        if heard and self.stage == "loading":
            self.stage = "starting" if self._is_ordered else "standby"
            if self.stage == "standby":
                log.info("worker stands by", pid=self.pid)
        if SERVING in heard and self.stage != "stopping":
            self.stage, self._serving_since = "serving", time.monotonic()
            log.info("worker serves", pid=self.pid)

    def serve(self) -> None:
        """Let it serve as soon as it can."""
        self._is_ordered = True
        self._enter("starting" if self.stage == "standby" else "loading")
        with suppress(BrokenPipeError):  # it is dead, which will be noticed
            os.write(self._orders.fileno(), SERVE)

    def stop(self) -> None:
        """Ask it to finish what it is at."""
        self._enter("stopping")
        self._process.terminate()

    def kill(self) -> None:
        """End it at once, even if it is stopped."""
        self._is_killed = True
        self._process.kill()

    def end(self) -> None:
        """End it at once, and see it gone: nothing of it holds the port any more."""
        self.kill()
        self._process.join(_ENDING_SECONDS)

    def is_dead(self) -> bool:
        """Has it ended? Then what it used here is given back."""
        if self._process.exitcode is None:
            return False
        self._process.join()
        for end in (self.beats, self._orders, self._stacks):
            end.close()
        return True

    @property
    def exit_code(self) -> int | None:
        """A negative number is the signal that ended it."""
        return self._process.exitcode

    @property
    def is_overdue(self) -> bool:
        """Is it silent for longer than it may be at this stage?"""
        return not self._is_killed and self._silent_seconds > self._patience[self.stage]

    @property
    def silent_seconds(self) -> float:
        """How long nothing was heard of it."""
        return self._silent_seconds

    @property
    def served_seconds(self) -> float:
        """How long it has been serving."""
        return 0.0 if self._serving_since is None else time.monotonic() - self._serving_since

    def stack(self) -> str:
        """Where its threads are, unless it is stopped altogether: files, lines and functions, no values."""
        with suppress(OSError):  # whatever goes wrong here, it is replaced
            os.kill(self.pid, STACK_SIGNAL)
            self._stacks.poll(_STACK_SECONDS)
            time.sleep(_STACK_SECONDS / 3)  # it comes line by line
        return _drained(self._stacks).decode(errors="replace")

    def _enter(self, stage: Stage) -> None:
        self.stage, self._silent_seconds = stage, 0.0


@contextmanager
def _held_signals() -> Iterator[None]:
    """A process begins as its parent is: one that holds signals back can load whatever it likes before it hears them."""
    resource_tracker.ensure_running()  # it would let them through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _drained(pipe: Connection) -> bytes:
    try:
        return os.read(pipe.fileno(), _STACK_BYTES)
    except BlockingIOError:
        return b""
