"""A worker's own side: it loads the application, stands by until it is told to serve, and lets its event loop beat."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket
    from multiprocessing.connection import Connection

BEAT, SERVING, SERVE = b".", b"s", b"g"
BEAT_SECONDS = 0.5
# uvicorn's event loop looks round every tenth of a second.
_TICKS_A_BEAT = 5
# Whoever asks a worker where it is sends it this; the answer goes to a pipe.
STACK_SIGNAL = signal.SIGUSR1
# They wait until the process knows what to do with them.
HELD_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
# After what a stop is given: the lanes and the database are closed.
CLOSING_SECONDS = 10


class _BeatingServer(uvicorn.Server):
    """Its heart is the event loop itself: a loop that does not come round does not beat."""

    def __init__(self, config: uvicorn.Config, beats: Connection) -> None:
        super().__init__(config)
        self._beats = beats

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell the supervisor once its sockets are served."""
        await super().startup(sockets)
        if self.started:
            _send(self._beats, SERVING)

    async def on_tick(self, counter: int) -> bool:
        """Let the supervisor hear that the event loop turns."""
        if counter % _TICKS_A_BEAT == 0:
            _send(self._beats, BEAT)
        return await super().on_tick(counter)


def run(config: uvicorn.Config, sockets: list[socket.socket], beats: Connection, orders: Connection, stacks: Connection) -> None:
    """Everything that the process does."""
    os.set_blocking(beats.fileno(), False)
    faulthandler.register(STACK_SIGNAL, stacks.fileno(), all_threads=True)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a hangup is the supervisor's to answer
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)
    config.configure_logging()
    threading.Thread(target=_end_with_supervisor, args=(config.timeout_graceful_shutdown or 0,), daemon=True).start()
    load(config)
    while not orders.poll(BEAT_SECONDS):
        _send(beats, BEAT)
    if os.read(orders.fileno(), len(SERVE)) != SERVE:
        return  # nobody is there to serve for
    server = _BeatingServer(config, beats)
    # Once stopped, uvicorn sends itself the signal again, to die of it: there is nothing left to do.
    with suppress(KeyboardInterrupt):
        server.run(sockets)


def load(config: uvicorn.Config) -> None:
    """Everything that serves, without looking for garbage meanwhile: what is loaded stays."""
    gc.disable()
    config.load()
    gc.enable()


def _end(*_: object) -> None:
    """Before it serves there is nothing to finish; after it has served, uvicorn sends the signal once more."""
    sys.exit(0)


def _send(beats: Connection, byte: bytes) -> None:
    """Never waits: a supervisor that does not listen must not hold the worker up."""
    with suppress(BlockingIOError, BrokenPipeError):
        os.write(beats.fileno(), byte)


def _end_with_supervisor(grace_seconds: float) -> None:
    """A supervisor that was killed cannot say anything, and its successor needs the port."""
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)
        # Not `time.sleep`, which fails below libfaketime: the process would stay for ever where its event loop hangs.
        threading.Event().wait(grace_seconds + CLOSING_SECONDS)
        os._exit(1)
