"""What a client has done that nobody was told of: to be watched, as any queue is."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from bestarm.forks import begin_anew_after_fork


@dataclass(frozen=True, slots=True)
class Counts:
    """Since the client was made, in this process."""

    fallbacks: int = 0
    """Asks that were answered with the fallback."""
    rewards_dropped: int = 0
    """Rewards of assignments that were no draw (a fallback, a concluded experiment): never sent."""
    rewards_sent: int = 0
    """Queued rewards that the service has."""
    rewards_refused: int = 0
    """Queued rewards that the service refused for good: in conflict with another one, or of something unknown."""
    rewards_overflowed: int = 0
    """Rewards that the queue had no room for."""
    rewards_waiting: int = 0
    """Rewards that are in the queue now."""


class Counter:
    """Numbers that any thread may add to."""

    def __init__(self) -> None:
        self.forked()
        begin_anew_after_fork(self)

    def forked(self) -> None:
        """A child counts from zero."""
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}

    def add(self, name: str, number: int = 1) -> None:
        """Count something by its name in `Counts`."""
        with self._lock:
            self._numbers[name] = self._numbers.get(name, 0) + number

    def counts(self, waiting: int) -> Counts:
        """All numbers as of now."""
        with self._lock:
            return Counts(**self._numbers, rewards_waiting=waiting)
