"""A span for each request that does not take the fast path, where traces are wanted."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from service.engine.traced_writer import RequestTimeline, timelines_of_request
from service.web.access.credentials import CALLER
from service.web.middleware.head_requests import ASKED_BY_HEAD
from service.web.request_context import current_request_id
from service.web.request_metrics import method_label, route_label
from service.web.request_spans import AnsweredRequest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class TracedRequestsMiddleware:
    """Plain ASGI: makes the spans of a request when its answer begins."""

    def __init__(self, app: ASGIApp, state: Any) -> None:  # noqa: ANN401 - Starlette's State
        self.app = app
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and note what the request queues meanwhile."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, is_recorded = perf_counter(), False
        timelines: list[RequestTimeline] = []

        def record(status: int) -> None:
            nonlocal is_recorded
            is_recorded = True
            given = [value for name, value in scope["headers"] if name == b"traceparent"]
            self.state.spans.record(
                AnsweredRequest(
                    method="HEAD" if ASKED_BY_HEAD in scope else method_label(scope["method"]),
                    route=route_label(scope),
                    status=status,
                    began=began,
                    answered=perf_counter(),
                    experiment=scope.get("path_params", {}).get("key"),
                    request_id=current_request_id(),
                    caller=scope.get(CALLER),
                    traceparent=given[0].decode("latin-1") if len(given) == 1 else None,
                    timelines=timelines,
                )
            )

        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                record(message["status"])
            await send(message)

        noted = timelines_of_request.set(timelines)
        try:
            await self.app(scope, receive, send_recorded)
        finally:
            timelines_of_request.reset(noted)
            if not is_recorded:
                record(500)  # answered outside of all middleware, if at all
