"""Every answer carries X-Request-Id (service/web/request_context.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.web.request_context import name_request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RequestIdMiddleware:
    """Plain ASGI, because it runs for every request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name the request, pass it on, and put the name on the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        name = name_request(given)

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", name)]
            await send(message)

        await self.app(scope, receive, send_named)
