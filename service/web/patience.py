"""How long an idle connection is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Patience:
    """Calls back when so many seconds have passed since `begin`, unless cancelled.

    It may begin anew thousands of times a second at next to no cost: its one timer looks at what is left when it goes off.
    """

    __slots__ = ("_call", "_loop", "_running", "_seconds", "_until")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, call: Callable[[], None]) -> None:
        self._loop, self._seconds, self._call = loop, seconds, call
        self._until: float | None = None
        self._running = False

    def begin(self) -> Patience:
        """From now on."""
        self._until = self._loop.time() + self._seconds
        if not self._running:
            self._wait(self._until)
        return self

    def cancel(self) -> None:
        """Something has happened."""
        self._until = None

    def _wait(self, until: float) -> None:
        self._running = True
        self._loop.call_at(until, self._look)

    def _look(self) -> None:
        self._running = False
        if self._until is None:
            return
        if self._until > self._loop.time():
            self._wait(self._until)
        else:
            self._until = None
            self._call()
