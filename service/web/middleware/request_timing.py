"""Each request counted and timed under its route's template."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from service.web.access.credentials import CALLER
from service.web.request_metrics import count_request, method_label, route_label

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RequestTimingMiddleware:
    """Plain ASGI: counts each request under its route's template when its answer begins."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and count."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, is_counted = perf_counter(), False

        def count(status: int) -> None:
            nonlocal is_counted
            is_counted = True
            seconds = perf_counter() - began
            count_request(method_label(scope["method"]), route_label(scope), status, seconds, scope.get(CALLER))

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                count(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        except Exception:
            if not is_counted:
                count(500)  # answered outside of all middleware
            raise
