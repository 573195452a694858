"""Long changes leave room for others."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from service.application.pauses import ChunkSize, pause_after


def test_a_pause_is_as_many_times_as_long() -> None:
    """By the clock of the event loop, which nothing else moves here."""

    async def run() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with pause_after(3.0):
            await asyncio.sleep(0.02)
            worked = loop.time() - began
        return worked, loop.time() - began

    worked, whole = asyncio.run(run())
    assert whole >= 3.9 * worked


def test_chunks_shrink_at_once_and_grow_slowly() -> None:
    """To what fits the time that they should take, never to nothing, and never more than twice as many."""
    size = ChunkSize(seconds=5.0)
    sizes = [size.rows]
    for _ in range(10):
        size.took(0.1)
        sizes.append(size.rows)
    assert all(later <= 2 * earlier for earlier, later in pairwise(sizes))
    assert sizes[-1] == 2_000
    size.took(20.0)
    assert size.rows == 500
    size.took(1_000.0)
    assert size.rows == 50
