"""A small HTTP proxy before a service that does to requests what networks do to them, one planned fault after the other."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple, Self

from testing.server import free_port

Fault = Literal[
    "reset_before", "reset_after", "cut", "unavailable", "unauthorized", "error", "garbage", "redirect", "not_found_page",
    "misdirected", "hang", "trickle", "slow", "duplicate",
]  # fmt: skip
_PAGE = b"<html>Sign in</html>"
# A closing socket with this option sends a reset: what was on its way is lost, and the other side is told so.
_RESET = struct.pack("ii", 1, 0)


class Request(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class FaultyProxy:
    """Passes requests on, but for those with a fault: by `on_path`, the next ones by `faults`, and after them all by `always`."""

    def __init__(self, upstream_port: int, *, ssl_context: ssl.SSLContext | None = None) -> None:
        self._ssl_context = ssl_context
        self.faults: deque[Fault | None] = deque()
        self.always: Fault | None = None
        self.on_path: dict[str, Fault] = {}
        """What happens to requests whose path ends so, every time."""
        self.faulty = 0
        """How many those were."""
        self.slow_seconds = 0.05
        self.retry_after = "0"
        self.requests: list[Request] = []
        self.connections = 0
        self._upstream_port = upstream_port
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.up()

    def up(self) -> None:
        """Take connections."""
        self._listener = socket.create_server(("127.0.0.1", self._port), backlog=512)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def down(self) -> None:
        """Be gone: connections are cut, new ones refused."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for connection in list(self._open):
            _reset(connection)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self.connections += 1
                self._open.add(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._ssl_context is not None:
                connection = self._ssl_context.wrap_socket(connection, server_side=True)
            with suppress(OSError, http.client.HTTPException), connection, connection.makefile("rb") as incoming:
                while (request := _read(incoming.readline, incoming.read)) is not None:
                    self.requests.append(request)
                    if not self._answer(connection, request, self._fault_of(request)):
                        return
        except ssl.SSLError:
            connection.close()  # whoever came does not trust us
        finally:
            self._open.discard(connection)

    def _fault_of(self, request: Request) -> Fault | None:
        for end, fault in self.on_path.items():
            if request.path.endswith(end):
                self.faulty += 1
                return fault
        return self.faults.popleft() if self.faults else self.always

    def _answer(self, connection: socket.socket, request: Request, fault: Fault | None) -> bool:
        """Answer, well or not; whether the connection can be used again."""
        if fault in _OWN_ANSWERS:
            connection.sendall(_OWN_ANSWERS[fault].replace(b"{retry_after}", self.retry_after.encode()))
            return True
        if fault == "hang":
            return not connection.recv(1)  # until the client gives up
        if fault == "reset_before":
            _reset(connection)
            return False
        if fault == "slow":
            time.sleep(self.slow_seconds)
        if fault == "duplicate":
            self._passed_on(request, lambda _: None)
        return self._relay(connection, request, fault)

    def _relay(self, connection: socket.socket, request: Request, fault: Fault | None) -> bool:
        answered = bytearray()
        is_whole = self._passed_on(request, answered.extend if fault else connection.sendall)
        if fault == "reset_after":
            _reset(connection)
        elif fault == "cut":
            connection.sendall(answered[:-10])
        elif fault == "trickle":
            for byte in answered:
                connection.sendall(bytes([byte]))
                time.sleep(0.02)
        elif fault:
            connection.sendall(answered)
        return is_whole and fault not in {"reset_after", "cut"}

    def _passed_on(self, request: Request, send: Callable[[bytes], object]) -> bool:
        """Ask the service and send what it says; whether the answer has an end that the client can see."""
        upstream = http.client.HTTPConnection("127.0.0.1", self._upstream_port, timeout=30)
        try:
            upstream.request(request.method, request.path, request.body or None, request.headers | {"connection": "close"})
            answer = upstream.getresponse()
            kept = [(name, value) for name, value in answer.getheaders() if name not in {"connection", "transfer-encoding"}]
            is_whole = answer.length is not None
            listed = [*kept, ("connection", "keep-alive" if is_whole else "close")]
            send(_head(answer.status, listed))
            while piece := answer.read1(65_536):
                send(piece)
            return is_whole
        finally:
            upstream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()


def _head(status: int, headers: list[tuple[str, str]]) -> bytes:
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _own(status: int, body: bytes, **headers: str) -> bytes:
    listed = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return _head(status, [*listed, ("content-length", str(len(body)))]) + body


_OWN_ANSWERS: dict[str, bytes] = {
    "unavailable": _own(
        503, b'{"code":"overloaded","detail":"Later."}', content_type="application/problem+json", retry_after="{retry_after}"
    ),
    "unauthorized": _own(401, b'{"code":"unauthorized","detail":"Who?"}', content_type="application/problem+json"),
    "error": _own(500, b"oops", content_type="text/plain"),
    "garbage": _own(200, _PAGE, content_type="text/html"),
    "not_found_page": _own(404, b"<html>default backend - 404</html>", content_type="text/html"),
    "misdirected": _own(421, b'{"code":"host_not_allowed","detail":"Not here."}', content_type="application/problem+json"),
    "redirect": _own(302, b"", location="https://login.example/"),
}


def _read(readline: Callable[[], bytes], read: Callable[[int], bytes]) -> Request | None:
    """The next request of a connection, if there is one."""
    first = readline().decode("latin-1").split()
    if not first:
        return None
    headers = {}
    while line := readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    body = read(int(headers.get("content-length", 0)))
    return Request(first[0], first[1], headers, body)


def _reset(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.shutdown(socket.SHUT_RD)  # whoever reads from it wakes up
        os.close(connection.detach())  # a file of it is still open, and would keep it
