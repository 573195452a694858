"""How a long change leaves the database to those who wait for answers: in chunks of some milliseconds, with pauses between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_SHORTEST_SECONDS = 0.005
_FEWEST, _MOST = 50, 2_000


@asynccontextmanager
async def pause_after(times: float) -> AsyncIterator[None]:
    """When the block has ended, wait so many times as long as it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    yield
    await asyncio.sleep(max(_SHORTEST_SECONDS, times * (loop.time() - began)))


class ChunkSize:
    """How many rows a chunk has, so that it takes about so long: that depends on the disk, the rows and who else is there."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.rows = 100

    def took(self, seconds: float) -> None:
        """A chunk has taken so long; the next one has as many rows as that shows to be right, but at most twice as many."""
        fitting = self.rows * min(2.0, self._seconds / seconds) if seconds > 0 else 2 * self.rows
        self.rows = max(_FEWEST, min(_MOST, round(fitting)))
