"""Observations as a stream of JSON lines: of any length, durable as it goes, and summed up."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import islice
from select import select
from typing import Any

import httpx
import pytest

from service.domain.limits import MOST_OBSERVATION_STREAMS
from testing.credentials import Credential, new_key
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.rows import Rows
from testing.server import Server

pytestmark = pytest.mark.process
_E = "/v1/experiments"
_NDJSON = {"content-type": "application/x-ndjson"}


def _line(number: int) -> bytes:
    return json.dumps({"arm": f"arm-{number % 2}", "reward": number % 2, "id": f"line-{number}"}).encode() + b"\n"


def _pieces(lines: int, size: int) -> Iterator[bytes]:
    """A body in pieces that end anywhere."""
    body = b"".join(map(_line, range(lines)))
    for start in range(0, len(body), size):
        yield body[start : start + size]


def _imported(api: httpx.Client, key: str) -> int:
    counted: int = api.get(f"{_E}/{key}/recommendation").json()["imported"]
    return counted


class _OpenStream:
    """A stream that is being sent, by hand."""

    def __init__(self, server: Server, key: str, secret: str | None = None) -> None:
        self._connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        head = f"POST {_E}/{key}/observations HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/x-ndjson\r\n"
        head += "" if secret is None else f"Authorization: Bearer {secret}\r\n"
        self._connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())

    def send(self, piece: bytes) -> None:
        """One more piece of the body."""
        self._connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))

    def finish(self) -> tuple[int, Any]:
        """End the body; status and answer."""
        self._connection.sendall(b"0\r\n\r\n")
        return self.answer()

    def is_answered(self, within: float) -> bool:
        """Has something come back, within so many seconds?"""
        return bool(select([self._connection], [], [], within)[0])

    def answer(self) -> tuple[int, Any]:
        """What came back."""
        head, _, body = self._connection.recv(65_536).partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)

    def close(self) -> None:
        """Without a goodbye."""
        self._connection.close()


def _until(true: Any) -> None:  # noqa: ANN401 - any condition
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_stream_is_told_and_summed_up(api: httpx.Client, experiment: str) -> None:
    """More lines than a batch may have, in pieces that end anywhere; sent again, nothing counts twice."""
    path, lines = f"{_E}/{experiment}/observations", 12_000
    first = api.post(path, content=_pieces(lines, 9_999), headers=_NDJSON)
    none = {"conflict": 0, "not_found": 0, "invalid": 0, "refused": []}
    assert (first.status_code, first.json()) == (200, {"lines": lines, "recorded": lines, "duplicate": 0} | none)
    again = api.post(path, content=_pieces(lines, 70_000), headers=_NDJSON)
    assert again.json() == {"lines": lines, "recorded": 0, "duplicate": lines} | none
    look = api.get(f"{_E}/{experiment}/recommendation").json()
    assert (look["observations"], look["imported"]) == (lines, lines)
    assert [arm["mean"] for arm in look["arms"]] == [0.0, 1.0]


def test_bad_lines_are_named_by_their_numbers(api: httpx.Client, experiment: str) -> None:
    """Empty ones count as lines and for nothing else, the last needs no end, and the good ones are told."""
    lines = [
        b'{"arm": "arm-0", "reward": 1, "id": "same", "time": "2026-01-01T00:00:00Z"}',
        b"",
        b'{"arm": "arm-0", "reward": 0, "id": "same"}',
        b'{"arm": "nobody", "reward": 1}',
        b"x" * 50_000,
        b"   ",
        b'{"arm": "arm-1", "reward": 2}',
        b'{"arm": "arm-1", "reward": 1}',
    ]
    answer = api.post(f"{_E}/{experiment}/observations", content=b"\n".join(lines), headers=_NDJSON).json()
    counts = {"lines": 6, "recorded": 2, "duplicate": 0, "conflict": 1, "not_found": 1, "invalid": 2}
    assert {name: answer[name] for name in counts} == counts
    assert [(one["line"], one["status"]) for one in answer["refused"]] == [
        (3, "conflict"),
        (4, "not_found"),
        (5, "invalid"),
        (7, "invalid"),
    ]


def test_what_was_sent_is_durable_although_the_stream_goes_on(server: Server, api: httpx.Client, experiment: str) -> None:
    """A quiet stream is told after a second; one that is cut leaves what was whole, and half a line counts nothing."""
    with closing(_OpenStream(server, experiment)) as stream:
        stream.send(b"".join(map(_line, range(5))) + _line(5)[:-9])
        _until(lambda: _imported(api, experiment) == 5)
        stream.send(_line(5)[-9:])
        _until(lambda: _imported(api, experiment) == 6)
        stream.send(_line(6) + b'{"arm": "arm-0", "rew')
    time.sleep(1.5)
    assert _imported(api, experiment) <= 7
    with closing(_OpenStream(server, experiment)) as stream:
        stream.send(b"".join(map(_line, range(8))))
        status, answer = stream.finish()
    assert (status, answer["lines"], answer["recorded"] + answer["duplicate"]) == (200, 8, 8)
    assert _imported(api, experiment) == 8


def test_a_long_stream_may_take_longer_than_a_body(new_database: NewDatabase) -> None:
    """As long as it goes on: only one that stalls is refused, and what it sent before is kept."""
    with Server(new_database(), BESTARM_BODY_SECONDS="2") as server, JsonClient(server.url) as wire, server.client() as api:
        wire.create("e", arms=arms(2))
        with closing(_OpenStream(server, "e")) as stream:
            for number in range(12):
                stream.send(_line(number))
                time.sleep(0.4)
            status, answer = stream.finish()
        assert (status, answer["recorded"]) == (200, 12)
        with closing(_OpenStream(server, "e")) as stream:
            stream.send(_line(100))
            assert stream.answer()[0] == 408
        assert _imported(api, "e") == 13
        assert "Traceback" not in server.log.read_text()


def test_killed_in_the_middle_and_repeated_each_line_counts_once(new_database: NewDatabase) -> None:
    """The service is gone with a part of the stream; sent again with its ids, all of it counts, once."""
    url, lines = new_database(), 20_000
    with Server(url) as server, JsonClient(server.url) as wire:
        wire.create("e", arms=arms(2))
        with closing(_OpenStream(server, "e")) as stream, Rows(url) as rows:
            for piece in islice(_pieces(lines, 60_000), 6):
                stream.send(piece)
            _until(lambda: rows.query("SELECT imported FROM experiments")[0][0] > 0)
            server.kill()
    with Server(url) as server, server.client() as api:
        before = _imported(api, "e")
        assert 0 < before < lines
        answer = api.post(f"{_E}/e/observations", content=_pieces(lines, 60_000), headers=_NDJSON).json()
        assert (answer["recorded"], answer["duplicate"]) == (lines - before, before)
        assert _imported(api, "e") == lines


def test_a_failure_says_how_far_it_came(server: Server, wire: JsonClient, key: str) -> None:
    """Archived in the middle: the problem tells up to which line everything is durable."""
    wire.create(key, arms=arms(2))
    with closing(_OpenStream(server, key)) as stream, server.client() as api:
        stream.send(b"".join(map(_line, range(3))) + b"\n")
        _until(lambda: _imported(api, key) == 3)
        assert wire.send("POST", f"{_E}/{key}/conclude").status == 200
        assert wire.send("POST", f"{_E}/{key}/archive").status == 200
        body = b"".join(map(_line, range(3, 6)))
        stream.send(body)
        status, problem = stream.finish()
    assert (status, problem["code"]) == (409, "experiment_not_running")
    assert problem["detail"].endswith("All lines up to number 4 are durable or were refused; of later ones some may be.")
    with server.client() as api:
        again = api.post(f"{_E}/{key}/observations", content=body, headers=_NDJSON)
        assert (again.status_code, again.headers["bestarm-lines"]) == (409, "0")
        assert _imported(api, key) == 3


@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_a_stream_ends_with_its_key(keyed_server: Server, keyed_wire: JsonClient, key: str, end: str) -> None:
    """What is sent after it is not told, however long ago the stream began; the problem tells how far it came."""
    keyed_wire.create(key, arms=arms(2))
    made = new_key(keyed_wire, scopes=["reward"])
    with (
        closing(_OpenStream(keyed_server, key, made["secret"])) as stream,
        keyed_server.client() as api,
        Rows(keyed_server.database_url) as rows,
    ):
        stream.send(b"".join(map(_line, range(3))))
        _until(lambda: _imported(api, key) == 3)
        if end == "revoked":
            assert keyed_wire.send("DELETE", f"/v1/keys/{made['id']}").status == 204
        else:
            assert keyed_wire.send("POST", f"/v1/keys/{made['id']}/rotate", {"grace_seconds": 0}).status == 201
        before = rows.fingerprint()
        stream.send(b"".join(map(_line, range(3, 9))))
        status, problem = stream.answer()
        assert (status, problem["code"]) == (401, "unauthorized")
        assert "up to number 3 are durable" in problem["detail"]
        assert rows.fingerprint() == before


def test_a_stream_that_ends_no_line_ends_with_its_key(keyed_server: Server, keyed_wire: JsonClient, key: str) -> None:
    """It has nothing to tell, and would keep its place for ever."""
    keyed_wire.create(key, arms=arms(2))
    made = new_key(keyed_wire, scopes=["reward"])
    with closing(_OpenStream(keyed_server, key, made["secret"])) as stream:
        stream.send(_line(0))
        with keyed_server.client() as api:
            _until(lambda: _imported(api, key) == 1)
        assert keyed_wire.send("DELETE", f"/v1/keys/{made['id']}").status == 204
        for _ in range(100):
            if stream.is_answered(within=0.1):
                break
            stream.send(b" ")
        status, problem = stream.answer()
    assert (status, problem["code"]) == (401, "unauthorized")
    assert "up to number 1 are durable" in problem["detail"]


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        (_NDJSON | {"idempotency-key": "once"}, 422, "validation_failed"),
        ({"content-type": "text/csv"}, 415, "unsupported_media_type"),
        ({"content-type": "application/x-ndjson2"}, 415, "unsupported_media_type"),
    ],
)
def test_what_is_refused(api: httpx.Client, experiment: str, headers: dict[str, str], status: int, code: str) -> None:
    """Before anything of it is told. Rewards of assignments come as lists only."""
    refused = api.post(f"{_E}/{experiment}/observations", content=_line(1), headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert api.post(f"{_E}/nobody/observations", content=_line(1), headers=_NDJSON).json()["code"] == "experiment_not_found"
    assert api.post(f"{_E}/{experiment}/rewards", content=_line(1), headers=_NDJSON).status_code == 415


def test_streams_are_few(server: Server, api: httpx.Client, experiment: str) -> None:
    """One too many is 503, and asks and probes go on."""
    with ExitStack() as opened:
        streams = [opened.enter_context(closing(_OpenStream(server, experiment))) for _ in range(MOST_OBSERVATION_STREAMS)]
        for number, stream in enumerate(streams):
            stream.send(_line(number))
        _until(lambda: _imported(api, experiment) == MOST_OBSERVATION_STREAMS)
        refused = api.post(f"{_E}/{experiment}/observations", content=_line(1), headers=_NDJSON)
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert api.post(f"{_E}/{experiment}/assignments", json={}).status_code == 201
        assert [stream.finish()[0] for stream in streams] == [200] * MOST_OBSERVATION_STREAMS
    assert api.post(f"{_E}/{experiment}/observations", content=_line(1), headers=_NDJSON).status_code == 200


def test_a_public_key_cannot_stream(keyed_wire: JsonClient, keyed_server: Server, key: str) -> None:
    """It rewards by unit alone; nor can a key without the scope."""
    keyed_wire.create(key, arms=arms(2))
    public = {"kind": "public", "scopes": ["reward"], "experiments": [key], "origins": ["https://shop.example"]}
    for wanted, headers in ((public, {"origin": "https://shop.example"}), ({"scopes": ["read"]}, {})):
        sent = Credential("", new_key(keyed_wire, **wanted)["secret"], headers=headers).sent
        named = {name.replace("_", "-"): value for name, value in sent.items()}
        refused = httpx.post(f"{keyed_server.url}{_E}/{key}/observations", content=_line(1), headers=_NDJSON | named)
        assert refused.status_code == 403
