"""Clients that take more than their part, of a service that serves another client meanwhile and is the same afterwards."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from testing.json_client import JsonClient
from testing.memory import most_memory, processes_of
from testing.server import Server
from testing.torture.soak import held
from testing.torture.workloads import ARMS

_EXPERIMENT = "greedy"
# Others ask at least for so long while one is greedy, so that what they meet is more than a moment.
_BESIDE_SECONDS = 10.0
# Who takes nothing for so long has stopped reading; who still reads by then will go on.
_STOPPED_READING_SECONDS, _READS_ON_SECONDS = 0.2, 60.0
_STREAMS, _BATCHES, _FLOOD = 1_000, 20, 2_000
# Slow clients, the pause between two bytes of each, and how long they go on: a head may take 10 s, a body 60 s, unless set.
_SLOW, _BYTE_SECONDS, _SLOW_SECONDS = 500, 0.5, 120.0
_PATH = f"/v1/experiments/{_EXPERIMENT}"
_HEADERS = "host: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 2"
_ASK = f"POST {_PATH}/assignments HTTP/1.1\r\n{_HEADERS}\r\n\r\n{{}}".encode()


def _connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def vanishing_streams(server: Server) -> str:
    """A thousand streams, whose clients are gone without a word."""
    look = f"GET {_PATH}/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
    opened = 0
    links = [_connected(server) for _ in range(_STREAMS)]
    for link in links:
        link.sendall(look)
    for link in links:
        opened += link.recv(12).startswith(b"HTTP/1.1 200")
    for link in links:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        link.close()
    return f"{opened} of {_STREAMS} were opened, the others refused"


def large_batches(server: Server) -> str:
    """Twenty batches of ten thousand at once."""
    statuses: list[int] = []

    def ask() -> None:
        with JsonClient(server.url) as client:
            statuses.append(client.send("POST", f"{_PATH}/assignments/batch", {"count": 10_000}).status)

    threads = [threading.Thread(target=ask) for _ in range(_BATCHES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 503}, statuses
    return f"{statuses.count(201)} of {_BATCHES} were drawn, {statuses.count(503)} told to come again"


def pipelining_flood(server: Server) -> str:
    """Two thousand asks sent at once, none of whose answers is waited for; then they are read."""
    with _connected(server) as link:
        sending = threading.Thread(target=link.sendall, args=(_ASK * _FLOOD,))
        sending.start()
        got = b""
        while got.count(b"HTTP/1.1 ") < _FLOOD and (piece := link.recv(1 << 20)):
            got += piece
        sending.join()
    return f"{got.count(b'HTTP/1.1 201')} of {_FLOOD} were answered with a draw, {got.count(b'HTTP/1.1 503')} told to come again"


def never_reading(server: Server) -> str:
    """A hundred clients that send and send and read nothing."""
    links, taken = [_connected(server) for _ in range(100)], 0
    stopped = closed = 0
    until = time.monotonic() + _READS_ON_SECONDS
    for link in links:
        link.settimeout(_STOPPED_READING_SECONDS)
        rest = b""
        try:
            while time.monotonic() < until:
                rest = rest or _ASK * 20
                sent = link.send(rest)  # a part of it, where there is no more room
                taken, rest = taken + sent, rest[sent:]
        except TimeoutError:
            stopped += 1
        except ConnectionError:
            closed += 1
    for link in links:
        link.close()
    asks = f"{taken // len(_ASK):,} asks ({taken / 1e6:.0f} MB) were taken off them"
    return f"{asks}; {stopped} of {len(links)} were not read any further, {closed} closed"


def idle_connections(server: Server) -> str:
    """Two thousand connections that say nothing."""
    links = []
    with suppress(OSError):
        links = [_connected(server) for _ in range(2_000)]
    time.sleep(1)
    for link in links:
        link.close()
    return f"{len(links)} connections"


def slow_heads(server: Server) -> str:
    """Five hundred clients whose heads have no end."""
    return _dripping(server, f"GET {_PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ".encode())


def slow_bodies(server: Server) -> str:
    """Five hundred clients that say how long their bodies are, and never get there."""
    return _dripping(server, _ASK.removesuffix(b"2\r\n\r\n{}") + b"16000\r\n\r\n")


def _dripping(server: Server, begun: bytes) -> str:
    """They send a byte now and then, until the service has enough of each of them."""
    links, late, closed = [_connected(server) for _ in range(_SLOW)], 0, 0
    began = time.monotonic()
    for link in links:
        link.sendall(begun)
        link.setblocking(False)
    while links and time.monotonic() < began + _SLOW_SECONDS:
        time.sleep(_BYTE_SECONDS)
        answers = {link: _heard_after_a_byte(link) for link in links}
        for link in [link for link in links if answers[link] is not None]:
            late += str(answers[link]).startswith("HTTP/1.1 408")
            closed += 1
            links.remove(link)
            link.close()
    assert not links, f"{len(links)} slow clients are waited for after {_SLOW_SECONDS:.0f} s"
    return f"{late} of {closed} were told that they are late (408), the others cut off, after {time.monotonic() - began:.0f} s"


def _heard_after_a_byte(link: socket.socket) -> str | None:
    """What the service says to one more byte: nothing while it waits for more, and no word when it has left."""
    try:
        link.send(b" ")
        return link.recv(4_096).decode("latin-1")
    except BlockingIOError:
        return None
    except OSError:
        return ""


KINDS: dict[str, Callable[[Server], str]] = {
    "1,000 streams that vanish": vanishing_streams,
    "20 batches of 10,000 at once": large_batches,
    "a pipelining flood": pipelining_flood,
    "clients that never read": never_reading,
    "idle connections": idle_connections,
    "slow heads": slow_heads,
    "slow bodies": slow_bodies,
}


def measure(database_url: str) -> list[dict[str, Any]]:
    """Each, what it came to, and how another client fared beside it."""
    with Server(database_url) as server:
        with JsonClient(server.url) as client:
            create_experiments(client)
        return [beside(server, name, done) for name, done in KINDS.items()]


def create_experiments(client: JsonClient) -> None:
    """What the greedy one and the other client ask."""
    client.create(_EXPERIMENT, arms=ARMS)
    client.create("polite", arms=ARMS)


def beside(server: Server, name: str, do: Callable[[Server], str], seconds: float = _BESIDE_SECONDS) -> dict[str, Any]:
    """Run one greedy client, again and again for so long; how it first ended, and how a polite client fared meanwhile."""
    ending, waited, failed = threading.Event(), [0.0], [0]

    def ask_politely() -> None:
        with JsonClient(server.url) as client:
            while not ending.wait(0.02):
                began = time.monotonic()
                failed[0] += client.send("POST", "/v1/experiments/polite/assignments", {}).status != 201
                waited.append(time.monotonic() - began)

    polite = threading.Thread(target=ask_politely)
    polite.start()
    before = held(server.process.pid)
    until = time.monotonic() + seconds
    try:
        said = do(server)
        while time.monotonic() < until:
            do(server)
    finally:
        ending.set()
        polite.join()
    time.sleep(2)
    after = held(server.process.pid)
    return {
        "what": name,
        "came_to": said,
        "others": len(waited) - 1,
        "others_failed": failed[0],
        "others_worst_ms": round(max(waited) * 1_000),
        "megabytes_before": round(before[0]),
        "megabytes_after": round(after[0]),
        "megabytes_at_most": round(most_memory(server) / 1e6),
        "files_before": before[1],
        "files_after": after[1],
        "processes": len(processes_of(server.process.pid)),
    }
