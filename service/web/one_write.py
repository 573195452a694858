"""An answer leaves in one piece.

uvicorn hands the head of an answer and its body to the socket one after the other, and each costs a system call, which on the hot
routes is a tenth of all work. Here the head waits for its body, at most until the event loop comes round.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class _OneWrite:
    """A transport that holds a first write back until the next one, or until the loop comes round."""

    __slots__ = ("_held", "_loop", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self.is_closing = transport.is_closing
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        """Hold it back, or send it with what is held back."""
        held = self._held
        if held is None:
            self._held = data
            self._loop.call_soon(self._flush)
        else:
            self._held = None
            self._transport.write(held + data)

    def write_whole(self, data: bytes) -> None:
        """Send an answer that is in one piece already."""
        if self._held is not None:
            self._flush()
        self._transport.write(data)

    def close(self) -> None:
        """Nothing held back is lost."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, None
        if held is not None and not self._transport.is_closing():
            self._transport.write(held)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a transport has
        return getattr(self._transport, name)


class OneWriteProtocol(HttpToolsProtocol):
    """uvicorn's own protocol over such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn itself
        """Put it in between."""
        one_write = _OneWrite(transport, self.loop)
        self.write_whole = one_write.write_whole
        super().connection_made(cast("asyncio.Transport", one_write))
