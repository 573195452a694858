"""A stand-in for a collector of traces: a real HTTP server that takes what OTLP over HTTP sends, and keeps it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came."""

    name: str
    trace: str
    id: str
    parent: str
    began: int
    ended: int
    kind: int
    failed: bool
    attributes: dict[str, Any] = field(hash=False)


class Collector:
    """Listens on loopback until the block ends."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        """What was sent, uncompressed."""
        self.service: dict[str, Any] = {}
        """What the sender says of itself."""
        self._spans: list[ReceivedSpan] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                is_known = (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
                if is_known:
                    collector.take(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def take(self, body: bytes) -> None:
        """Keep what one request sent."""
        self.bodies.append(body)
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.service = _values(of_resource.resource.attributes)
            for of_scope in of_resource.scope_spans:
                self._spans += [_received(span) for span in of_scope.spans]

    def spans(self, trace: str | None = None) -> list[ReceivedSpan]:
        """What has come, of one trace if it is named, by beginning; what contains another comes before it."""
        found = [span for span in list(self._spans) if trace is None or span.trace == trace]
        return sorted(found, key=lambda span: (span.began, -span.ended))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _received(span: Any) -> ReceivedSpan:  # noqa: ANN401 - of protobuf
    return ReceivedSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.kind,
        span.status.code == span.status.STATUS_CODE_ERROR,
        _values(span.attributes),
    )


def _values(attributes: Sequence[Any]) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
