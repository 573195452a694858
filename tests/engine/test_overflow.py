"""Who found the queue full waits for a place, in order, and not for long."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from service.application.commands.ask import Ask
from service.domain.callers import SERVICE
from service.engine.overflow import PATIENCE_SECONDS, Overflow
from service.engine.queue import FutureRecipient, Queue, QueuedRequest
from service.errors import Overloaded

# A busy machine may wake a timer this much later.
_LATE_SECONDS = 2.0


def _request() -> QueuedRequest[Any]:
    return QueuedRequest(SERVICE, "key", Ask(None), FutureRecipient(loop=asyncio.get_running_loop()))


def test_places_are_given_in_order_of_arrival() -> None:
    """As many as there are; the others go on waiting."""

    async def study() -> None:
        overflow, queue = Overflow(), Queue()
        requests = [_request() for _ in range(3)]
        for request in requests:
            overflow.add(request, asyncio.get_running_loop())
        overflow.move_into(queue, 2)
        assert list(queue) == requests[:2]
        assert len(overflow.waiting) == 1
        overflow.move_into(queue, 5)
        assert list(queue) == requests
        assert not overflow.waiting
        await asyncio.sleep(3 * PATIENCE_SECONDS)
        assert not any(request.is_settled() for request in requests)

    asyncio.run(study())


def test_who_finds_no_place_is_refused() -> None:
    """Not at once, and not much later than it may wait; the last one, too."""

    async def study() -> None:
        overflow, loop = Overflow(), asyncio.get_running_loop()
        requests = [_request() for _ in range(500)]
        began = time.monotonic()
        for request in requests:
            overflow.add(request, loop)
        await asyncio.sleep(PATIENCE_SECONDS / 2)
        if time.monotonic() - began < PATIENCE_SECONDS:
            assert not any(request.answered for request in requests)
        async with asyncio.timeout(_LATE_SECONDS):
            answers = await asyncio.gather(*(request.recipient for request in requests), return_exceptions=True)  # type: ignore[call-overload]
        assert {type(answer) for answer in answers} == {Overloaded}
        assert not overflow.waiting

    asyncio.run(study())
