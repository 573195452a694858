"""The service and the application under stock uvicorn, each on a database of its own, and the same way to both."""

from __future__ import annotations

import socket
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from testing.json_client import JsonClient
from testing.reverse_proxy import SITE, ReverseProxy
from testing.server import Server
from testing.torture.raw_requests import LAST, RawCase
from testing.torture.workloads import ARMS

Way: TypeAlias = Literal["direct", "nginx", "haproxy"]
WAYS: tuple[Way, ...] = get_args(Way)
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "ledger": {"policy": {"kind": "simple_tracking", "seed": 1}},
    "sticky": {"sticky": True, "policy": {"kind": "simple_tracking", "seed": 1}},
}
_ROOT = Path(__file__).parents[2]
# Who waits for more bytes after the last one says nothing. Where an end is sure to come it is waited for.
_SILENCE_SECONDS, _END_SECONDS = 0.3, 30.0
# What had to wait for a busy machine is there, once another request was answered after it.
_AFTER_OTHERS_SECONDS = 0.1
_BEHIND_OTHERS = b"POST /v1/experiments/waiting/assignments HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Heard:
    """All that was answered over one connection."""

    answers: bytes
    was_cut: bool
    """It was reset under what was still being sent: the last of what was answered may be lost."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two, as it is reached: by plain HTTP, or by TLS through a proxy."""

    server: Server
    port: int
    trusting: ssl.SSLContext | None = None

    def exchange(self, case: RawCase) -> Heard:
        """Send it piece by piece; all that is answered, until the end or until nothing comes any more."""
        got, was_cut = bytearray(), False
        with self._connected() as link:
            try:
                was_cut = not case.send_over(link)
                if not _read_on(link, got, _END_SECONDS if case.has_end else _SILENCE_SECONDS) and not case.has_end:
                    self._wait_for_others()
                    _read_on(link, got, _AFTER_OTHERS_SECONDS)
            except ConnectionError:
                was_cut = True
        return Heard(bytes(got), was_cut)

    def _wait_for_others(self) -> None:
        """Ask for something that waits for its turn behind everything that was asked for before."""
        with self._connected() as link:
            link.sendall(_BEHIND_OTHERS + LAST)
            _read_on(link, bytearray(), _END_SECONDS)

    def _connected(self) -> socket.socket:
        link = socket.create_connection(("127.0.0.1", self.port), timeout=_END_SECONDS)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link if self.trusting is None else self.trusting.wrap_socket(link, server_hostname="localhost")


def _read_on(link: socket.socket, got: bytearray, silence: float) -> bool:
    """Read until the end or until it was silent for so long; was it the end?"""
    link.settimeout(silence)
    try:
        while piece := link.recv(65_536):
            got += piece
    except TimeoutError:
        return False
    except ssl.SSLError:
        pass  # it was closed without a word of goodbye
    return True


@contextmanager
def both(ours: str, stock: str) -> Iterator[tuple[Server, Server]]:
    """The service on one database, the application under uvicorn on another."""
    program = (sys.executable, "-m", "testing.stock_uvicorn")
    with (
        Server(ours, BESTARM_ALLOWED_HOSTS=SITE) as one,
        Server(stock, program=program, cwd=_ROOT, BESTARM_ALLOWED_HOSTS=SITE) as other,
    ):
        for server in (one, other):
            with JsonClient(server.url) as client:
                for key, settings in EXPERIMENTS.items():
                    client.create(key, arms=ARMS, **settings)
                client.create("waiting", arms=ARMS)
        yield one, other


@contextmanager
def sides(servers: tuple[Server, Server], way: Way) -> Iterator[tuple[Side, Side]]:
    """Both, reached directly or each through such a proxy with the configuration of deploy/proxies/."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bestarm-way-")))
        reached = []
        for number, server in enumerate(servers):
            if way == "direct":
                reached.append(Side(server, server.port))
            else:
                proxy = opened.enter_context(ReverseProxy(way, [server.port, server.port], folder / str(number)))
                reached.append(Side(server, proxy.port, proxy.trusting))
        yield reached[0], reached[1]
