"""When a call must be back, all its tries included."""

from __future__ import annotations

import time
from typing import Self


class Deadline:
    """A moment of the monotonic clock."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at

    @classmethod
    def after(cls, seconds: float) -> Self:
        """So many seconds from now."""
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Seconds until then; below zero when it is over."""
        return self.at - time.monotonic()


class TimeLeft(float):
    """The seconds left when an operation began, which knows its deadline.

    HTTP libraries hand time-outs through to the socket, one for each operation, so a server that sends a byte now and then is
    never too late. Ours is a number to them, and to the socket (`network.py`) it tells what is left by now.
    """

    __slots__ = ("deadline",)
    deadline: Deadline

    @classmethod
    def until(cls, deadline: Deadline) -> Self:
        """What is left until the deadline."""
        made = cls(max(deadline.left(), 0.0))
        made.deadline = deadline
        return made


def now_left(timeout: float | None) -> float | None:
    """What is left of a time-out by now, if it knows; zero and below when it is over."""
    return timeout.deadline.left() if isinstance(timeout, TimeLeft) else timeout
