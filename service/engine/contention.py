"""Which experiments other workers write, too, as far as this process has noticed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from service.engine import engine_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.domain import Progress

# How long one whose row somebody else holds is asked for by itself.
_LOCKED_SECONDS = 60.0
# How long an experiment that another worker writes, too, is decided under its lock.
_SECONDS = 1.0


class Contention:
    """The experiments in which another worker was faster a moment ago: it may be so again, and a lock is fair."""

    def __init__(self) -> None:
        self.until: dict[str, float] = {}
        """By experiment; empty where one worker serves all."""
        self.locked: dict[str, float] = {}
        """Experiments that could not be locked in time: until when they are asked for first."""

    def includes(self, *keys: str) -> bool:
        """Has another worker been faster in one of these a moment ago?"""
        now = time.monotonic()
        self.until = {key: until for key, until in self.until.items() if until > now}
        return not self.until.keys().isdisjoint(keys)

    def note_locked(self, keys: Iterable[str]) -> None:
        """Somebody holds these and does not let go; nobody else's requests are to wait with theirs."""
        until = time.monotonic() + _LOCKED_SECONDS
        for key in keys:
            self.locked[key] = self.until[key] = until

    def note_unlocked(self, keys: Iterable[str]) -> None:
        """They can be had again."""
        for key in keys:
            self.locked.pop(key, None)
            self.until[key] = time.monotonic() + _SECONDS

    def locked_among(self, keys: Iterable[str]) -> set[str]:
        """Which of these could not be locked lately?"""
        now = time.monotonic()
        self.locked = {key: until for key, until in self.locked.items() if until > now}
        return self.locked.keys() & set(keys)

    def note_versions(self, locked: dict[str, Progress], expected: dict[int, int]) -> None:
        """Compare the versions under the lock with those that were expected: where they differ another worker was faster."""
        moved = [key for key, found in locked.items() if expected.get(found.experiment.id, found.version) != found.version]
        if moved:
            engine_metrics.group_outrun()
            self.until |= dict.fromkeys(moved, time.monotonic() + _SECONDS)
