"""What was made from one version of an experiment, kept until a newer one is asked for and made once however many wait.

A thousand viewers of one experiment cost one computation and one rendering.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar

Content = TypeVar("Content")


class Subject(Enum):
    """Everything that is cached by version. A key is a subject, with the experiment's id and the form where there are several."""

    RECOMMENDATION = "what is known of an experiment"
    RECOMMENDATION_JSON = "the same, written"
    COURSE = "how it came about"
    HISTORY_JSON = "the course as JSON"
    FORECAST = "when its verdict will be there"
    CHART = "a picture of either"
    LIST = "a page of the dashboard's list"
    LIST_ROW = "an experiment in it"
    LIST_TRAFFIC = "how much traffic it has, and the small picture of it"
    LIST_FORECAST = "when its verdict will be there, at leisure"
    LIST_LABELS = "what the list can be filtered by"
    FLAGS = "the flags that are evaluated together, as far as people change them"
    PLAN = "what to expect of an experiment that does not run yet"


# Together; the least recently used goes first. A recommendation with 10 arms takes 3 KB, with 10,000 arms 3 MB.
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cached(Generic[Content]):
    """Something, the version it shows, and how many bytes it takes, about."""

    version: int
    content: Content
    size: int
    at: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self.at


Make: TypeAlias = Callable[[], Awaitable[Cached[Content]]]


def cached_bytes(version: int, body: bytes) -> Cached[bytes]:
    """Bytes to send."""
    return Cached(version, body, len(body))


class VersionCache:
    """The newest of each subject. One per process."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._made: dict[Hashable, Cached[Any]] = {}
        self._running: dict[Hashable, asyncio.Task[Cached[Any]]] = {}

    def newest(self, subject: Hashable) -> Cached[Any] | None:
        """What is there, whatever its version."""
        made = self._made.pop(subject, None)
        if made is not None:
            self._made[subject] = made  # the most recently used stands last
        return made

    async def at_least(self, subject: Hashable, version: int, make: Make[Content]) -> Cached[Content]:
        """What shows this version or a newer one; made now if need be, by one of all who wait for it."""
        while True:
            made = self.newest(subject)
            if made is not None and made.version >= version:
                return made
            running = self._running.get(subject)
            if running is None:
                return await asyncio.shield(self._start(subject, make))
            await asyncio.shield(running)  # it may have begun before this version was there: look again

    async def within(self, subject: Hashable, seconds: float, make: Make[Content]) -> Cached[Content]:
        """What was made at most so long ago; made now if need be."""
        made = self.newest(subject)
        if made is not None and made.age <= seconds:
            return made
        return await asyncio.shield(self._running.get(subject) or self._start(subject, make))

    def _start(self, subject: Hashable, make: Make[Content]) -> asyncio.Task[Cached[Content]]:
        task = self._running[subject] = asyncio.create_task(self._make(subject, make))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, even if nobody waits any more
        return task

    async def _make(self, subject: Hashable, make: Make[Content]) -> Cached[Content]:
        try:
            made = await make()
        finally:
            del self._running[subject]
        self._forget(subject)
        self._made[subject] = made
        self._size += made.size
        while self._size > self._most and len(self._made) > 1:
            self._forget(next(iter(self._made)))
        return made

    def _forget(self, subject: Hashable) -> None:
        made = self._made.pop(subject, None)
        self._size -= made.size if made else 0
