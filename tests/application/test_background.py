"""Work beside the requests goes on whatever happens to a round of it, until it is closed."""

from __future__ import annotations

import asyncio

import pytest

from service.application.background import Repeated
from service.errors import Overloaded


@pytest.mark.parametrize("failure", [Overloaded("the queue is full"), ZeroDivisionError()])
def test_a_round_that_fails_is_tried_again(failure: Exception) -> None:
    """A refusal of ours and a defect alike."""
    rounds = 0
    done = asyncio.Event()

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds < 3:
            raise failure
        done.set()

    async def run() -> None:
        repeated = Repeated("work", work, every_seconds=0.0)
        repeated.start()
        await asyncio.wait_for(done.wait(), 10)
        await repeated.close()
        ended_at = rounds
        await asyncio.sleep(0.01)
        assert rounds == ended_at

    asyncio.run(run())
    assert rounds >= 3


def test_what_never_began_can_be_closed() -> None:
    """A start that failed halfway closes everything."""

    async def work() -> None:
        raise AssertionError("nobody started it")

    asyncio.run(Repeated("work", work, every_seconds=0.0).close())
