"""Turns: one at a time, a bounded number waits, and whoever gives up makes room."""

from __future__ import annotations

import asyncio

import pytest

from service.application.live.turns import Turns
from service.errors import Overloaded


def test_one_at_a_time_and_a_bounded_number_waits() -> None:
    """Two may wait: the fourth is told at once, and all others have their turn."""

    async def study() -> None:
        turns, inside, most, go_on = Turns(2), 0, 0, asyncio.Event()

        async def work() -> None:
            nonlocal inside, most
            async with turns:
                inside += 1
                most = max(most, inside)
                await go_on.wait()
                inside -= 1

        waiting = [asyncio.create_task(work()) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await work()
        go_on.set()
        await asyncio.gather(*waiting)
        assert most == 1
        await work()

    asyncio.run(study())


def test_whoever_gives_up_makes_room() -> None:
    """A cancelled one waits no longer, and a failed one has had its turn."""

    async def study() -> None:
        turns = Turns(1)

        async def work() -> None:
            async with turns:
                raise ZeroDivisionError

        async with turns:
            waiting = asyncio.create_task(work())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            next_one = asyncio.create_task(work())
            await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            await next_one
        async with turns:
            pass

    asyncio.run(study())
