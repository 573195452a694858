"""How long an idle connection is kept."""

from __future__ import annotations

import asyncio

from service.web.patience import Patience


def test_it_ends_that_long_after_it_began_last() -> None:
    """However often it began before, and not while something is going on."""

    async def ends() -> tuple[float, list[float]]:
        loop, ended = asyncio.get_running_loop(), list[float]()
        patience = Patience(loop, 0.2, lambda: ended.append(loop.time()))
        patience.begin()
        await asyncio.sleep(0.15)
        patience.cancel()
        await asyncio.sleep(0.15)
        for _ in range(1000):
            patience.cancel()
            patience.begin()
        began = loop.time()
        patience.begin()
        await asyncio.sleep(1)
        return began, ended

    began, ended = asyncio.run(ends())
    assert len(ended) == 1
    assert 0.2 <= ended[0] - began < 0.9
