"""HEAD wherever GET is: the head of the same answer, and nothing after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


# In the scope of what is a GET to the routes.
ASKED_BY_HEAD = "bestarm.asked_by_head"


class HeadMiddleware:
    """Plain ASGI: to the routes the request is a GET; what they send after the head is left out, and a stream ends there."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass on, as a GET if it is a HEAD. What passes as it is takes no coroutine more."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            return self.app(scope, receive, send)

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})

        return self.app({**scope, "method": "GET", ASKED_BY_HEAD: True}, receive, send_head)
