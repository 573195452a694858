"""Each request in the access log, where there is one (service/web/access_log.py)."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from service.web.access.credentials import CALLER
from service.web.middleware.head_requests import ASKED_BY_HEAD
from service.web.request_context import current_request_id
from service.web.request_metrics import method_label, route_label

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class LoggedRequestsMiddleware:
    """Plain ASGI: writes a line when a request is over, however it ended."""

    def __init__(self, app: ASGIApp, state: Any) -> None:  # noqa: ANN401 - Starlette's State
        self.app = app
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and write."""
        log = self.state.access_log
        if scope["type"] != "http" or log is None:
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
            log.write(
                "HEAD" if by_head else method_label(scope["method"]),
                route_label(scope),
                scope.get("path_params", {}),
                status,
                seconds=perf_counter() - began,
                size=0 if by_head else size,
                request_id=current_request_id(),
                caller=scope.get(CALLER),
            )
