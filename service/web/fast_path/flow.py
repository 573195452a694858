"""When a connection is read on: never while requests wait in it for their turn, whoever asks for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.flow_control import FlowControl

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sized


class FlowOfTurns(FlowControl):
    """uvicorn's own, which an application that waits for a body, or for its client to go, would have read on.

    With others behind it the body of the request whose turn it is has arrived. What they need is read when it is their turn.
    """

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting
        """The requests of this connection that have not had their turn."""

    def resume_reading(self) -> None:
        """Read on, unless somebody waits."""
        if not self._waiting:
            super().resume_reading()
