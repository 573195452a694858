"""Each request in the access log (service/web/access_log.py); only there where somebody wants one."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from service.web.access.credentials import CALLER
from service.web.middleware.head_requests import ASKED_BY_HEAD
from service.web.request_context import current_request_id
from service.web.request_metrics import method_label, route_label

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from service.web.access_log import AccessLog


class LoggedRequestsMiddleware:
    """Plain ASGI: writes a line when a request is over, however it ended."""

    def __init__(self, app: ASGIApp, log: AccessLog) -> None:
        self.app = app
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and write."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, size = perf_counter(), 500, 0  # what fails before it has an answer gets that one

        async def send_counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            by_head = ASKED_BY_HEAD in scope
            self.log.write(
                "HEAD" if by_head else method_label(scope["method"]),
                route_label(scope),
                scope.get("path_params", {}),
                status,
                seconds=perf_counter() - began,
                size=0 if by_head else size,
                request_id=current_request_id(),
                caller=scope.get(CALLER),
            )
