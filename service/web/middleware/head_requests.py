"""HEAD wherever GET is: the head of the same answer, and nothing after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


# In the scope of what is a GET to the routes.
ASKED_BY_HEAD = "bestarm.asked_by_head"


class HeadMiddleware:
    """Plain ASGI: to the routes the request is a GET; what they send after the head is left out, and a stream ends there."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, as a GET if it is a HEAD."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})

        await self.app({**scope, "method": "GET", ASKED_BY_HEAD: True}, receive, send_head)
