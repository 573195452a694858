"""Requests that found the queue full: each waits a moment for a place in it, and is refused when it found none.

Refused at once, a client comes again at once, or another takes its place; and to read and to refuse a request costs up to a third
of what serving it would. So a worker that is offered five times what it can do would spend most of its time on refusals. A
refusal that takes a moment keeps the connection quiet for that moment: with C connections and a patience of p seconds no more
than C/p requests a second come in at all. Beyond that, refusals get a share of the worker's time and no more.

Who waits here is bounded by the worker's connections: a connection has one request at a time, what is pipelined is not read.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Any

from service.errors import Overloaded

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from service.engine.queue import Queue, QueuedRequest

PATIENCE_SECONDS = 0.025
# How often it is looked who has waited for too long, and how much of that time may go into telling them.
_TURN_SECONDS, _REFUSING_SECONDS = 0.005, 0.00075


def refuse(request: QueuedRequest[Any]) -> None:
    """It has waited for a place in vain."""
    request.fail(Overloaded("Too many requests are waiting; try again in a moment."))


class Overflow:
    """In order of arrival, before the queue and behind it: whoever has waited longest is the next to get a place."""

    def __init__(self, refuse: Callable[[QueuedRequest[Any]], None] = refuse) -> None:
        self._refuse = refuse
        self.waiting: deque[tuple[float, QueuedRequest[Any]]] = deque()
        """Each with the time at which it is refused."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, request: QueuedRequest[Any], loop: asyncio.AbstractEventLoop) -> None:
        """Let it wait for a place."""
        self.waiting.append((loop.time() + PATIENCE_SECONDS, request))
        if self._timer is None:
            self._timer = loop.call_later(_TURN_SECONDS, self._refuse_late, loop)

    def move_into(self, queue: Queue, room: int) -> None:
        """Give away so many places."""
        waiting = self.waiting
        for _ in range(min(room, len(waiting))):
            queue.append(waiting.popleft()[1])

    def _refuse_late(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, now, until = self.waiting, loop.time(), perf_counter() + _REFUSING_SECONDS
        while waiting and waiting[0][0] <= now and perf_counter() < until:
            self._refuse(waiting.popleft()[1])
        self._timer = loop.call_later(_TURN_SECONDS, self._refuse_late, loop) if waiting else None
