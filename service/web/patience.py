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

    __slots__ = ("_call", "_loop", "_seconds", "_timer", "until")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, call: Callable[[], None]) -> None:
        self._loop, self._seconds, self._call = loop, seconds, call
        self.until: float | None = None
        """None while there is something else to wait for."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> Patience:
        """From now on."""
        self.until = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self.until, self._look)
        return self

    def cancel(self) -> None:
        """Something has happened."""
        self.until = None

    def end(self) -> None:
        """Nothing will happen any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer, until = None, self.until
        if until is None:
            return
        if until > self._loop.time():
            self._timer = self._loop.call_at(until, self._look)
        else:
            self.until = None
            self._call()
