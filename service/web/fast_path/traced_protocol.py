"""The fast path where traces are wanted. Where they are not, this is not even loaded."""

from __future__ import annotations

import re
from time import perf_counter
from typing import TYPE_CHECKING, Any

from service.web.fast_path.protocol import FastPathProtocol
from service.web.fast_path.recogniser import FastRequest, Stranger
from service.web.request_spans import AnsweredRequest

if TYPE_CHECKING:
    import asyncio

    from service.engine.traced_writer import RequestTimeline, TracedWriter
    from service.web.request_spans import RequestSpans

_TRACEPARENT = re.compile(rb"\r\ntraceparent: ?([0-9a-f-]{55})\r\n", re.IGNORECASE)


class TracedProtocol(FastPathProtocol):
    """The connection as it is, and a span for each ask and tell that it answers itself."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn itself
        """Look up once what every request needs."""
        super().connection_made(transport)
        self._spans: RequestSpans = self.app.state.spans
        self._writer: TracedWriter = self.app.state.context.writer
        self._traceparent: str | None = None
        self._timeline: RequestTimeline | None = None

    def data_received(self, data: bytes) -> None:
        """Note what trace it belongs to, while all of its head is there."""
        found = _TRACEPARENT.search(self._begun + data)
        self._traceparent = None if found is None else found[1].decode()
        super().data_received(data)

    def _is_queued(self, request: FastRequest) -> bool:
        is_queued = super()._is_queued(request)
        self._timeline = self._writer.timeline_of(request) if is_queued else None
        return is_queued

    def _write(self, request: FastRequest | Stranger, status: int, *rest: Any) -> None:  # noqa: ANN401 - its own
        answered, is_written = perf_counter(), request.response_complete
        traceparent, timeline = self._traceparent, self._timeline  # the next request may be here before this returns
        super()._write(request, status, *rest)
        if is_written:
            return
        self._spans.record(
            AnsweredRequest(
                method="POST",
                route=request.route,
                status=status,
                began=request.began,
                answered=answered,
                experiment=request.parameters.get("key"),
                request_id=request.name.decode(),
                caller=request.caller,
                traceparent=traceparent,
                timelines=() if timeline is None else (timeline,),
            )
        )
