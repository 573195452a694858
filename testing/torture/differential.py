"""The same bytes to the service and to the same application under uvicorn as it comes: the same answers, and the same rows."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

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
_Answer: TypeAlias = tuple[int, dict[str, str], Any]
"""Status, headers that matter, and what it says without what differs from run to run."""
_KINDS: dict[str, dict[str, Any]] = {
    "ledger": {"policy": {"kind": "simple_tracking", "seed": 1}},
    "sticky": {"sticky": True, "policy": {"kind": "simple_tracking", "seed": 1}},
}
# What differs from one run to the next.
_OF_THE_RUN = {"id", "created_at", "expires_at", "rewarded_at", "as_of", "request_id", "next_page_token"}
_TRACE = b"Traceback"
_HEADERS = ("content-type", "etag", "location", "allow", "idempotency-replayed", "retry-after", "www-authenticate")
_WITHOUT_BODY = {100, 204, 304}
# What is no HTTP is a problem here, and a line of text there.
_NO_HTTP = {"malformed_request"}
_NO_HTTP_THERE = b"Invalid HTTP request received."
_REFUSED: _Answer = (400, {}, None)
# All that is stored, but for what differs from one run to the next.
_ROWS = {
    "assignments": "draw, sequence, arm, unit, reason, epoch, expiry_reward, status, reward, closed, idempotency_key",
    "events": "sequence, kind, arm, draw, epoch, reason, expiry_reward, status_before, reward_before, closed_before,"
    " status_after, reward_after, closed_after, details",
    "observations": "id, arm, reward, sequence, status, epoch",
    "replies": "route, key, body_hash, status",
}


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
    with ThreadPoolExecutor(len(servers)) as threads:
        for number in numbers:
            case = raw_case(number)
            one, other = threads.map(lambda server: _answers(_exchange(server.port, case)), servers)  # noqa: B023 - awaited here
            _compare_answers(found, number, case, one, other)
    for key in _KINDS:
        one_s, other_s = (_all_rows(server.database_url, key) for server in servers)
        found.differences += [f"{key} has other {table}" for table in one_s if one_s[table] != other_s[table]]
    return found


def _compare_answers(found: Compared, number: int, case: RawCase, one: Sequence[_Answer], other: Sequence[_Answer]) -> None:
    found.cases += 1
    found.answers += len(one)
    for status, _, body in one:
        found.statuses[status] = found.statuses.get(status, 0) + 1
        if (status >= 500 and status != 503) or _TRACE in str(body).encode():
            found.failures.append(f"case {number}: {status} {body}"[:300])
    if not _alike(one, other):
        found.differences.append(f"case {number}: {case.sent!r}: {one} or {other}"[:2_000])


def _all_rows(database_url: str, key: str) -> dict[str, Any]:
    """Everything that is stored of an experiment, by table."""
    found: dict[str, Any] = {}
    with Rows(database_url) as stored:
        ((number,),) = stored.query("SELECT id FROM experiments WHERE key = :key", key=key)
        for table, columns in _ROWS.items():
            query = f"SELECT {columns} FROM {table} WHERE experiment_id = :number ORDER BY 1, 2"
            found[table] = stored.query(query, number=number)
        found["events"] = found["events"][1:]  # it was made at another time
        found["arms"] = stored.arms_of(key)
    return found


def _alike(ours: Sequence[_Answer], stock: Sequence[_Answer]) -> bool:
    """Where bytes are no HTTP, uvicorn drops the answers to what came before them; here they are given first."""
    if ours == stock:
        return True
    return list(stock[-1:]) == list(ours[-1:]) == [_REFUSED] and len(ours) > len(stock) and ours[: len(stock) - 1] == stock[:-1]


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


def _answers(got: bytes) -> list[_Answer]:
    """Each answer; one whose body has no length is the last."""
    found: list[_Answer] = []
    while head := _STATUS_LINE.match(got):
        status, fields = int(head[1]), _fields(head[2])
        length = fields.get("content-length")
        rest = got[head.end() :]
        if length is None and status not in _WITHOUT_BODY:
            return [*found, (status, {}, f"a body without a length: {rest!r}")]
        body, got = rest[: int(length or 0)], rest[int(length or 0) :]
        found.append(_comparable(status, fields, body))
    return found


def _fields(head: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in head.decode("latin-1").splitlines())
    return {name.lower(): value.strip() for name, _, value in lines}


def _comparable(status: int, fields: dict[str, str], body: bytes) -> _Answer:
    if status == 400 and body == _NO_HTTP_THERE:
        return _REFUSED
    try:
        said = _without(json.loads(body))
    except ValueError:
        said = body.decode("latin-1")
    if status == 400 and isinstance(said, dict) and said.get("code") in _NO_HTTP:
        return _REFUSED
    kept = {name: fields[name] for name in _HEADERS if name in fields}
    return status, kept | ({"etag": "…"} if "etag" in kept else {}), said  # it is made of times, too


def _without(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {name: _without(one) for name, one in value.items() if name not in _OF_THE_RUN}
    if isinstance(value, list):
        return [_without(one) for one in value]
    return _ID.sub("asg_…", value) if isinstance(value, str) else value
