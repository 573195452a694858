"""The open connections of a worker: how long each may be kept, and the one timer that looks after all of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import structlog

from service.domain import limits

log = structlog.get_logger(__name__)


class TimedConnection(Protocol):
    """A connection that writes its own deadlines down."""

    deadline: float
    unread_deadline: float

    def time_out(self) -> None:
        """The client has not done its part in time."""

    def leave_unread(self) -> None:
        """The client has not read in time."""

    def give_up(self) -> None:
        """Nobody looks after it any more: close it at once."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How long a client may keep a connection without doing its part, and how much of one."""

    head_seconds: float = limits.HEAD_SECONDS
    body_seconds: float = limits.BODY_SECONDS
    keep_alive_seconds: float = limits.KEEP_ALIVE_SECONDS
    head_bytes: int = limits.MOST_HEAD_BYTES
    connections: int = limits.MOST_CONNECTIONS
    drain_seconds: float = 0.0
    """How long a connection that waits for a request may still send one when the service stops."""


class OpenConnections:
    """All connections of a process, looked after by one timer: what a request costs for it is to write a deadline down."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.open: set[TimedConnection] = set()
        self._every = min(1.0, limits.head_seconds / 4, limits.body_seconds / 4, limits.keep_alive_seconds / 4)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to check their deadlines."""
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._every, self._check_deadlines)

    def close(self) -> None:
        """Check no more deadlines."""
        if self._timer is not None:
            self._timer.cancel()

    def _check_deadlines(self) -> None:
        # First: nothing that happens below may be the end of all deadlines.
        self._timer = self._loop.call_later(self._every, self._check_deadlines)
        now = self._loop.time()
        for connection in [one for one in self.open if one.deadline <= now or one.unread_deadline <= now]:
            try:
                if connection.deadline <= now:
                    connection.time_out()
                if connection.unread_deadline <= now:
                    connection.leave_unread()
            except Exception:
                log.exception("a connection cannot be held to its deadlines and is given up")
                self.open.discard(connection)
                with suppress(Exception):
                    connection.give_up()
