"""Large answers in pieces: whole whatever happens to the others, and one piece in each turn of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from itertools import pairwise
from typing import Any

import pytest

from service.web.response_pieces import in_pieces, sent_in_pieces

_BODY = bytes(range(256)) * 8_192


async def _receive() -> MutableMapping[str, Any]:
    raise AssertionError("Nobody needs to be heard.")


async def _send_to(pieces: list[bytes], log: list[int], reader: int) -> None:
    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body":
            pieces.append(message["body"])
            log.append(reader)

    await sent_in_pieces(_BODY)({"type": "http"}, _receive, send)


@pytest.mark.parametrize("again", [1, 2])  # another loop each time
def test_all_readers_get_all_of_it_in_turns(again: int) -> None:
    """Two of five go while they wait; the others take turns and miss nothing."""

    async def study() -> None:
        readers: list[list[bytes]] = [[] for _ in range(5)]
        log: list[int] = []
        tasks = [asyncio.create_task(_send_to(pieces, log, number)) for number, pieces in enumerate(readers)]
        for _ in range(13):  # two until they begin, one until the first goes
            await asyncio.sleep(0)
        for gone in tasks[:2]:
            gone.cancel()
        await asyncio.gather(*tasks[2:])
        assert [b"".join(pieces) for pieces in readers[2:]] == [_BODY] * 3
        assert log[:10] == [0, 1, 2, 3, 4] * 2
        assert log[-6:] == [2, 3, 4] * 2

    for _ in range(again):
        asyncio.run(study())


@pytest.mark.parametrize(("size", "pieces"), [(10, 1), (128 * 1024, 1), (128 * 1024 + 1, 2), (len(_BODY), 16)])
def test_an_event_goes_out_in_pieces(size: int, pieces: int) -> None:
    """A large one, with what stands around it; a small one is written at once."""

    async def sent() -> list[bytes]:
        return [piece async for piece in in_pieces(_BODY[:size], b"data: ", b"\n\n")]

    found = asyncio.run(sent())
    assert (b"".join(found), len(found)) == (b"data: " + _BODY[:size] + b"\n\n", pieces)


def test_a_turn_of_the_loop_has_one_piece() -> None:
    """However many read: whoever else wants the loop waits for one piece at most."""

    async def study() -> None:
        log: list[int] = []
        tasks = [asyncio.create_task(_send_to([], log, number)) for number in range(20)]
        seen = [0]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            seen.append(len(log))
        assert max(after - before for before, after in pairwise(seen)) == 1

    asyncio.run(study())
