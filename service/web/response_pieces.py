"""Answers as they go out: a large one in pieces, the next when the connection has taken the last.

The server copies whatever it is given at once into the connection's buffer. So a large answer would be copied on the event loop,
and once for every slow reader; in pieces, a thousand readers share the bytes of one answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

_PIECE = 256 * 1024


class _PiecewiseResponse(Response):
    """Its length is announced, as of any other answer."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it; `send` waits while the connection's buffer is full."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        whole = memoryview(self.body)
        for start in range(0, len(whole), _PIECE):
            end = start + _PIECE
            await send({"type": "http.response.body", "body": bytes(whole[start:end]), "more_body": end < len(whole)})


def sent_in_pieces(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None, media_type: str = "application/json"
) -> Response:
    """An answer with this body; in one piece if it is small."""
    kind = _PiecewiseResponse if len(body) > _PIECE else Response
    return kind(body, status, dict(headers or {}), media_type)
