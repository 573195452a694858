"""Answers as they go out: a large one in pieces, the next when the connection has taken the last.

The server copies whatever it is given at once into the connection's buffer. So a large answer would be copied on the event loop,
and once for every slow reader; in pieces, a thousand readers share the bytes of one answer. Of all pieces that wait, one goes
in each turn of the loop: whoever asks something small meanwhile waits for one piece, not for one of every reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from fastapi import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.types import Receive, Scope, Send

_PIECE = 128 * 1024


class _OneATurn:
    """Lets one of those who wait go on in each turn of the event loop, in their order."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def my_turn(self) -> None:
        """Return in a turn of the loop of its own, after those who waited before."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append(mine)
        if len(self._waiting) == 1:
            loop.call_soon(self._next)
        await mine

    def _next(self) -> None:
        first = self._waiting.popleft()
        if not first.done():  # whoever waited may have gone
            first.set_result(None)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _OneATurn] = WeakKeyDictionary()


def _turns_of_this_loop() -> _OneATurn:
    loop = asyncio.get_running_loop()
    if loop not in _turns:
        _turns[loop] = _OneATurn()
    return _turns[loop]


class _PiecewiseResponse(Response):
    """Its length is announced, as of any other answer."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it; `send` waits while the connection's buffer is full."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        left = len(self.body)
        async for piece in in_pieces(bytes(self.body)):
            left -= len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": left > 0})


async def in_pieces(whole: bytes, before: bytes = b"", after: bytes = b"") -> AsyncIterator[bytes]:
    """For whoever waits after each until it has been taken: a stream's large event goes out as a large answer does."""
    if len(whole) <= _PIECE:
        yield before + whole + after
        return
    view, turns = memoryview(whole), _turns_of_this_loop()
    for start in range(0, len(view), _PIECE):
        await turns.my_turn()
        end = start + _PIECE
        yield (before if start == 0 else b"") + bytes(view[start:end]) + (after if end >= len(view) else b"")


def sent_in_pieces(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None, media_type: str = "application/json"
) -> Response:
    """An answer with this body; in one piece if it is small."""
    kind = _PiecewiseResponse if len(body) > _PIECE else Response
    return kind(body, status, dict(headers or {}), media_type)
