"""Streams must end when the process is asked to stop: the server waits for open answers before it tells the application."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def calling_at_stop(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` in the event loop at the first SIGTERM or SIGINT, besides what the server does then."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return
    loop = asyncio.get_running_loop()
    servers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(tell)
        then = servers[signal.Signals(number)]
        if callable(then):
            then(number, frame)

    heard = [number for number, then in servers.items() if callable(then)]
    for number in heard:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in heard:
            if signal.getsignal(number) is handle:
                signal.signal(number, servers[number])
