"""A receiver of webhooks in a thread of its own: real HTTP, and what can go wrong with it, one planned fault after the other."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self

from standardwebhooks.webhooks import Webhook

Fault = Literal["error", "redirect", "hang", "slow", "close", "half", "gone", "endless"]
# A webhook that is told of nothing, and leads nowhere: the name is loopback's, which no message is sent to.
QUIET_WEBHOOK: dict[str, Any] = {"url": "http://localhost:9/hooks", "events": ["experiment.paused"], "experiments": ["of-nobody"]}
_STATUSES = {"error": 500, "redirect": 301, "gone": 410}
# A closing socket with this option sends a reset.
_RESET = struct.pack("ii", 1, 0)


@dataclass
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes
    fault: Fault | None
    sender: int = 0
    """The id of the process that sent it and is left hanging."""

    @property
    def id(self) -> str:
        """Of the message."""
        return self.headers["webhook-id"]

    @property
    def message(self) -> dict[str, Any]:
        """What it tells."""
        told: dict[str, Any] = json.loads(self.body)
        return told

    @property
    def type(self) -> str:
        """Of the event."""
        kind: str = self.message["type"]
        return kind

    def is_signed_by(self, secret: str) -> bool:
        """Does the official verifier accept it? It raises if not."""
        Webhook(secret).verify(self.body, self.headers)
        return True


def _process_with(port: int) -> int:
    """The process that has a connection from this port of 127.0.0.1; 0 if there is none any more."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {row[9] for row in rows if row[1] == f"0100007F:{port:04X}"}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(link.readlink().name in {f"socket:[{inode}]" for inode in inodes} for link in (folder / "fd").iterdir()):
                return int(folder.name)
    return 0


class Receiver:
    """Takes what comes: the next requests as `faults` plan it, all others well. `down` and `up` again, it keeps its port."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.requests: list[Received] = []
        self.faults: deque[Fault | None] = deque()
        self.slow_seconds = 0.3
        self.redirect_to = "http://127.0.0.1:1/elsewhere"
        self._host, self._port = host, 0
        self._server: _Server | None = None
        self.up()
        self.url = f"http://{host}:{self._port}/hooks"

    @property
    def taken(self) -> list[Received]:
        """What was answered well."""
        return [one for one in self.requests if one.fault in (None, "slow", "endless", "half")]

    def messages(self) -> list[dict[str, Any]]:
        """What was told, each message once, in the order of its first arrival."""
        return list({one.id: one.message for one in self.taken}.values())

    def wait_for(self, holds: Callable[[], object], seconds: float = 30) -> None:
        """Until it holds; fails if it does not."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, [(one.type, one.fault) for one in self.requests]
            time.sleep(0.01)

    def up(self) -> None:
        """Take connections."""
        self._server = _Server((self._host, self._port), self)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def down(self) -> None:
        """Be gone: connections are refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], receiver: Receiver) -> None:
        super().__init__(address, _Handler)
        self.receiver = receiver


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers["content-length"]))
        fault = receiver.faults.popleft() if receiver.faults else None
        headers = {name.lower(): value for name, value in self.headers.items()}
        sender = _process_with(self.client_address[1]) if fault == "hang" else 0
        received = Received(self.path, headers, body, fault, sender)
        receiver.requests.append(received)
        self.close_connection = True
        with suppress(OSError):
            self._answer(receiver, fault)

    do_GET = do_POST  # noqa: N815 - nobody should come so; if somebody does, it is seen

    def _answer(self, receiver: Receiver, fault: Fault | None) -> None:
        if fault == "hang":
            self.connection.recv(1)  # until the sender gives up
            return
        if fault == "close":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.connection.close()
            return
        if fault == "slow":
            time.sleep(receiver.slow_seconds)
        self.send_response(_STATUSES.get(fault or "", 200))
        if fault == "redirect":
            self.send_header("Location", receiver.redirect_to)
        length = {"half": 100, "endless": 10**9}.get(fault or "", 2)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if fault == "endless":
            while True:
                self.wfile.write(b"x" * 65_536)
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""
