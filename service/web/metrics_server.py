"""`/metrics` on a port of its own, and nothing else there: no key, no database, no worker is needed to read it."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from service.web.hosts import is_address
from service.web.request_metrics import MEDIA_TYPE, exposition

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from service.web.hosts import AllowedHosts

# Whoever sends half a request is not waited for.
_REQUEST_SECONDS = 10.0


def _handler(hosts: AllowedHosts) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            """Answer with the numbers of all workers."""
            if not self._is_for_us():
                self._answer(421, b"This service does not answer to that name.\n", "text/plain")
            elif self.path.partition("?")[0] != "/metrics":
                self._answer(404, b"There is /metrics.\n", "text/plain")
            else:
                self._answer(200, exposition(), MEDIA_TYPE)

        def _is_for_us(self) -> bool:
            """As on the other port (service/web/middleware/known_host.py), or by an address: so Prometheus finds pods."""
            given = [value.encode("latin-1") for value in self.headers.get_all("Host") or []]
            if len(given) == 1:
                return hosts.accepts(given[0]) is True or is_address(given[0])
            return not given and self.request_version == "HTTP/1.0"

        def _answer(self, status: int, content: bytes, media_type: str) -> None:
            self.send_response_only(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the library's name
            """Say nothing: these requests are nobody's traffic."""

    return Handler


class MetricsServer:
    """A thread for each address that the service listens on."""

    def __init__(self, sockets: Sequence[socket.socket], hosts: AllowedHosts) -> None:
        self._servers = [self._over(one, hosts) for one in sockets]

    @staticmethod
    def _over(listening: socket.socket, hosts: AllowedHosts) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(listening.getsockname()[:2], _handler(hosts), bind_and_activate=False)
        server.daemon_threads = True
        server.socket.close()
        server.socket = listening
        server.server_activate()
        return server

    def start(self) -> None:
        """Begin to answer."""
        for server in self._servers:
            threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        for server in self._servers:
            server.shutdown()
            server.server_close()
