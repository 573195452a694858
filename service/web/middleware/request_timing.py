"""Each request counted and timed under its route's template."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from service.web.request_metrics import count_request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class RequestTimingMiddleware:
    """Plain ASGI: counts each request under its route's template when its answer begins."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and count."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = perf_counter()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "other"
                # The router leaves its match in the scope; what matched nothing must not make a series of its own.
                route = getattr(scope.get("route"), "path", "other")
                count_request(method, route, message["status"], perf_counter() - began)
            await send(message)

        await self.app(scope, receive, send_counted)
