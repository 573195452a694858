"""The same bytes to the service and to the same application under uvicorn as it comes: the same answers, and the same rows."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testing.json_client import JsonClient
from testing.rows import Rows
from testing.server import Server
from testing.torture.raw_requests import LAST, RawCase, raw_case
from testing.torture.workloads import ARMS

_ROOT = Path(__file__).parents[2]
# Who waits for more bytes after the last one says nothing. Where an end is sure to come it is waited for.
_SILENCE_SECONDS, _END_SECONDS = 1.0, 30.0
_ID = re.compile(r"asg_[0-9a-f]+")
_STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r]*\r\n((?:[^\r]*\r\n)*?)\r\n")
_KINDS: dict[str, dict[str, Any]] = {
    "ledger": {"policy": {"kind": "simple_tracking", "seed": 1}},
    "sticky": {"sticky": True, "policy": {"kind": "simple_tracking", "seed": 1}},
}
# What differs from one run to the next.
_OF_THE_RUN = {"id", "created_at", "expires_at", "rewarded_at", "as_of", "request_id", "next_page_token"}
_TRACE = b"Traceback"


@dataclass(slots=True)
class Compared:
    """How the answers of the two services compare."""

    cases: int = 0
    answers: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Answers of 5xx other than 503, and those with a trace in them."""


@contextmanager
def both(ours: str, stock: str) -> Iterator[tuple[Server, Server]]:
    """The service on one database, the application under uvicorn on another."""
    program = (sys.executable, "-m", "testing.stock_uvicorn")
    with Server(ours) as one, Server(stock, program=program, cwd=_ROOT) as other:
        for server in (one, other):
            with JsonClient(server.url) as client:
                for key, settings in _KINDS.items():
                    client.create(key, arms=ARMS, **settings)
        yield one, other


def compare(servers: Sequence[Server], numbers: range) -> Compared:
    """Case by case, and the rows at the end."""
    found = Compared()
    for number in numbers:
        case = raw_case(number)
        one, other = (_answers(_exchange(server.port, case)) for server in servers)
        found.cases += 1
        found.answers += len(one)
        for status, body in one:
            found.statuses[status] = found.statuses.get(status, 0) + 1
            if (status >= 500 and status != 503) or _TRACE in str(body).encode():
                found.failures.append(f"case {number}: {status} {body}"[:300])
        if not _alike(one, other):
            found.differences.append(f"case {number}: {case.sent!r}: {one} or {other}"[:2_000])
    for key in _KINDS:
        rows = []
        for server in servers:
            with Rows(server.database_url) as stored:
                rows.append((stored.assignments_of(key), stored.arms_of(key)))
        if rows[0] != rows[1]:
            found.differences.append(f"{key} has other rows")
    return found


def _alike(ours: Sequence[tuple[int, Any]], stock: Sequence[tuple[int, Any]]) -> bool:
    """Where bytes are no HTTP, uvicorn drops the answers to what came before them; here they are given first."""
    refused = (400, None)
    if ours == stock:
        return True
    return stock[-1:] == ours[-1:] == [refused] and len(ours) > len(stock) and ours[: len(stock) - 1] == stock[:-1]


def _exchange(port: int, case: RawCase) -> bytes:
    """Send it piece by piece; all that is answered, until the end or until nothing comes any more."""
    got = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link, suppress(ConnectionError):
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in case.pieces:
            with suppress(ConnectionError):  # it has been refused already: what it was told is still there
                link.sendall(piece)
        link.settimeout(_END_SECONDS if case.sent.endswith(LAST) else _SILENCE_SECONDS)
        with suppress(TimeoutError):
            while piece := link.recv(65_536):
                got += piece
    return bytes(got)


def _answers(got: bytes) -> list[tuple[int, Any]]:
    """(status, what it says without what differs from run to run) of each answer."""
    found = []
    while head := _STATUS_LINE.match(got):
        status, length = int(head[1]), re.search(rb"(?im)^content-length: *(\d+)", head[2])
        body = got[head.end() : head.end() + int(length[1])] if length else b""
        got = got[head.end() + len(body) :]
        found.append((status, _comparable(status, body)))
    return found


def _comparable(status: int, body: bytes) -> Any:  # noqa: ANN401 - JSON
    if status == 400:
        return None  # what is no HTTP is a problem here, and a line of text there
    try:
        return _without(json.loads(body))
    except ValueError:
        return body.decode("latin-1")


def _without(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {name: _without(one) for name, one in value.items() if name not in _OF_THE_RUN}
    if isinstance(value, list):
        return [_without(one) for one in value]
    return _ID.sub("asg_…", value) if isinstance(value, str) else value
