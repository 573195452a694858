"""Streams: whoever watches an experiment learns of its changes from one statement every half second per process.

A viewer is told the newest version, never a queue of them: one that reads slowly misses the states in between.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from service.errors import BestArmError, DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from service.application.live.versions import Versions
    from service.domain import ExperimentVersion

# At most two states a second reach a viewer.
EVERY_SECONDS = 0.5
# A silent connection is closed by many a proxy after 30 or 60 seconds.
_SILENT_SECONDS = 15.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Watched:
    version: ExperimentVersion
    viewers: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def publish(self, version: ExperimentVersion) -> None:
        self.version = version
        self.wake()

    def wake(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()


class Watcher:
    """Looks at all watched experiments together, again and again, until it is closed."""

    def __init__(self, versions: Versions, every_seconds: float = EVERY_SECONDS) -> None:
        self._versions = versions
        self._every = every_seconds
        self._watched: dict[str, _Watched] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Is the process about to stop?"""
        return self._closed

    @property
    def viewers(self) -> int:
        """How many watch something."""
        return sum(one.viewers for one in self._watched.values())

    def start(self) -> None:
        """Begin to read the versions of what is watched."""
        self._task = asyncio.create_task(self._run(), name="watcher")

    def end_streams(self) -> None:
        """Let every viewer go, now and from now on: the process is about to stop."""
        self._closed = True
        self._release()

    async def close(self) -> None:
        """End the streams and the reading."""
        self.end_streams()
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def follow(self, key: str, version: ExperimentVersion) -> AsyncGenerator[ExperimentVersion | None, None]:
        """This version, then each newer one that is found; None when nothing has changed for a while.

        Ends when the process stops, the database is away or the experiment is deleted, so that a viewer does not take silence
        for calm.
        """
        watched = self._watched.setdefault(key, _Watched(version))
        watched.viewers += 1
        try:
            yield version
            await asyncio.sleep(self._every)
            while not self._closed and self._watched.get(key) is watched:
                if watched.version > version:
                    version = watched.version
                    yield version
                    continue
                try:
                    async with asyncio.timeout(_SILENT_SECONDS):
                        await watched.news.wait()
                except TimeoutError:
                    yield None
        finally:
            watched.viewers -= 1
            if not watched.viewers and self._watched.get(key) is watched:
                del self._watched[key]

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            if self._watched:
                try:
                    await self._read_versions()
                except BestArmError as trouble:
                    log.warning("streams end, their viewers will come back", reason=str(trouble))
                    self._release()
                except Exception:
                    log.exception("the watcher failed and will try again")
                    self._release()

    async def _read_versions(self) -> None:
        """By one statement; if that fails, one by one: what is wrong with one experiment ends no other's streams."""
        keys = list(self._watched)
        answers = await asyncio.gather(*map(self._versions.current, keys), return_exceptions=True)
        for key, version in zip(keys, answers, strict=True):
            watched = self._watched.get(key)
            if isinstance(version, DatabaseUnavailable):
                raise version
            if watched is None:
                continue  # its last viewer has gone meanwhile
            if isinstance(version, BaseException) or version.experiment != watched.version.experiment:
                del self._watched[key]  # it was deleted, or cannot be read: its viewers come back and are told so
                watched.wake()
            elif version.number > watched.version.number:
                watched.publish(version)

    def _release(self) -> None:
        released = list(self._watched.values())
        self._watched.clear()
        for watched in released:
            watched.wake()
