"""Traces: spans of a request and of the group that made it durable, sent to a collector by OTLP over HTTP.

    POST /v1/experiments/{key}/assignments      the request, from its arrival until its answer began
      group                                     from the queue until it was durable
        queue, look up, decide, write

Spans are made when a request is answered, of times that were noted on its way, so what is not sampled costs next to nothing. They
say who asked for what and how that went, and nothing of what was asked or answered: no unit, no value, no reward, no secret.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from service.domain.callers import Caller
    from service.engine.traced_writer import RequestTimeline

# A collector that is away holds nothing up but its own thread, and a stop no longer than this.
_EXPORT_SECONDS = 3.0
# Asked every few seconds by machines.
_UNTRACED = {"/healthz", "/readyz", "/metrics"}
_PROPAGATOR = TraceContextTextMapPropagator()
# Refused for the state of something that is there; otherwise what a refused request calls an experiment may be anything.
_FOUND = {HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED}


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """What is known of a request when its answer begins."""

    method: str
    route: str
    status: int
    began: float
    """By `time.perf_counter`, as all times of it."""
    answered: float
    experiment: str | None
    request_id: str
    caller: Caller | None
    traceparent: str | None
    """Of the W3C's header: what the caller's own trace is."""
    timelines: Sequence[RequestTimeline]


class RequestSpans:
    """One per worker."""

    def __init__(self, endpoint: str, share: float) -> None:
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=_EXPORT_SECONDS)
        resource = Resource.create({"service.name": "bestarm", "service.version": __version__})
        sampler = ParentBased(TraceIdRatioBased(share))
        self._provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("bestarm", __version__)

    def record(self, request: AnsweredRequest) -> None:
        """Make the spans of a request, if it is among those that are traced."""
        if request.route in _UNTRACED:
            return
        parent = _PROPAGATOR.extract({} if request.traceparent is None else {"traceparent": request.traceparent})
        epoch = time.time_ns() - round(time.perf_counter() * 1e9)
        span = self._started(f"{request.method} {request.route}", parent, epoch, request.began, SpanKind.SERVER)
        if not span.is_recording():
            return
        span.set_attributes({"http.request.method": request.method, "http.route": request.route})
        span.set_attribute("http.response.status_code", request.status)
        span.set_attribute("bestarm.request_id", request.request_id)
        if request.caller is not None and request.caller.id is not None:
            span.set_attribute("bestarm.key", request.caller.id)
        if request.experiment is not None and (request.status < HTTPStatus.BAD_REQUEST or request.status in _FOUND):
            span.set_attribute("bestarm.experiment", request.experiment)
        if request.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            span.set_status(StatusCode.ERROR)
        inside = set_span_in_context(span)
        for timeline in request.timelines:
            self._record_group(timeline, inside, epoch, request.answered)
        span.end(_at(epoch, request.answered))

    def _record_group(self, timeline: RequestTimeline, parent: Context, epoch: int, answered: float) -> None:
        group = timeline.group
        span = self._started("group", parent, epoch, timeline.queued)
        inside = set_span_in_context(span)
        taken = answered if group is None else max(group.taken, timeline.queued)
        self._started("queue", inside, epoch, timeline.queued).end(_at(epoch, taken))
        if group is None:
            span.end(_at(epoch, answered))
            return
        span.set_attributes({"bestarm.group.requests": group.requests, "bestarm.group.decided_ahead": group.decided_ahead})
        for name, began, ended in group.phases:
            self._started(name, inside, epoch, began).end(_at(epoch, ended))
        span.end(_at(epoch, group.phases[-1][2] if group.phases else answered))

    def _started(self, name: str, parent: Context, epoch: int, at: float, kind: SpanKind = SpanKind.INTERNAL) -> Span:
        return self._tracer.start_span(name, parent, kind, start_time=_at(epoch, at))

    def close(self) -> None:
        """Send what is left, if anybody takes it; a collector that says nothing is left behind after a few seconds."""
        closing = Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_EXPORT_SECONDS)


def _at(epoch: int, seconds: float) -> int:
    """A time by the clock on the wall, in nanoseconds."""
    return epoch + round(seconds * 1e9)
