"""Work beside the requests: done again and again by a task of its own, whatever happens to one round of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from service.errors import BestArmError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = structlog.get_logger(__name__)


class Repeated:
    """A round of work that is done again a while after it ended, until it is closed."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        every_seconds: float,
        *,
        at_the_end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._name, self._work, self._every, self._at_the_end = name, work, every_seconds, at_the_end
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with the first round."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def close(self) -> None:
        """Stop; what a round has submitted to the writer is finished there, and what it has begun beside itself is ended."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._at_the_end:
            await self._at_the_end()

    async def _run(self) -> None:
        while True:
            try:
                await self._work()
            except BestArmError as trouble:
                log.warning("background work could not run and will be tried again", work=self._name, reason=str(trouble))
            except Exception:
                log.exception("background work failed and will be tried again", work=self._name)
            await asyncio.sleep(self._every)
