"""Exports over HTTP: streamed, bounded, cut and gone on with."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.domain.limits import MOST_EXPORTS, MOST_EXPORTS_OF_KEY
from testing.credentials import Credential, new_key
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.memory import processes_of
from testing.server import Server, bearer

_E = "/v1/experiments"
_LONG = "export-long"
_DRAWS = 20_000
pytestmark = pytest.mark.process
_EXPORT = "service.web.exports.export_process"


def _long_export(wire: JsonClient, key: str) -> str:
    """The path of an export that is longer than all buffers between the service and its reader."""
    wire.create(key, arms=arms(3))
    for part in range(_DRAWS // 10_000):
        units = [f"{part}-{number}-{'x' * 240}" for number in range(10_000)]
        assert wire.send("POST", f"{_E}/{key}/assignments/batch", {"units": units}).status == 201
    return f"{_E}/{key}/export?format=jsonl"


@pytest.fixture(scope="module")
def long(untraced_server: Server) -> str:
    """The key of an experiment whose export takes more than 10 MB."""
    with JsonClient(untraced_server.url) as wire:
        _long_export(wire, _LONG)
    return _LONG


@pytest.fixture(scope="module")
def keyed_long(keyed_wire: JsonClient) -> str:
    """The path of such an export, in the service with keys."""
    return _long_export(keyed_wire, _LONG)


@pytest.fixture
def reader(untraced_server: Server) -> Iterator[httpx.Client]:
    """A client of its own: what reads long answers."""
    with untraced_server.client() as client:
        yield client


def _exports_of(server: Server) -> list[int]:
    """The processes of its exports."""
    found = []
    for pid in processes_of(server.process.pid):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        except OSError:  # gone meanwhile
            continue
        found += [pid] if _EXPORT in command else []
    return found


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def _stalled(server: Server, path: str, **headers: str) -> Iterator[socket.socket]:
    """A reader that has asked for an export, has its head, and reads no further."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.connect(("127.0.0.1", server.port))
        sent = {"Host": f"127.0.0.1:{server.port}"} | headers
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        connection.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
        assert b" 200 OK\r\n" in connection.recv(1024)
        yield connection


def _rows(lines: bytes) -> list[dict[str, Any]]:
    """The whole ones."""
    return [json.loads(line) for line in lines.splitlines(keepends=True) if line.endswith(b"\n")]


def test_a_cut_export_is_gone_on_with(untraced_server: Server, reader: httpx.Client, long: str) -> None:
    """Cut in the middle of a line, again and again, and resumed after the last whole row: every row, and none twice."""
    rows: list[dict[str, Any]] = []
    for most in (300_000, 5_000_000, None):
        taken, after = b"", rows[-1]["sequence"] if rows else 0
        with reader.stream("GET", f"{_E}/{long}/export", params={"format": "jsonl", "after": after}) as answer:
            for piece in answer.iter_raw(65_536):
                taken += piece
                if most is not None and len(taken) > most:
                    break
        rows += _rows(taken if most is None else taken[:-7])
    assert [row["draw"] for row in rows] == list(range(1, _DRAWS + 1))
    whole = reader.get(f"{_E}/{long}/export", params={"format": "jsonl"})
    assert rows == _rows(whole.content)
    _until(lambda: not _exports_of(untraced_server))


def test_a_reader_that_leaves_frees_process_and_connection(untraced_server: Server, reader: httpx.Client, long: str) -> None:
    """As many exports as there may be, abandoned: soon there is no process of theirs, and room for another."""
    with ExitStack() as readers:
        for _ in range(MOST_EXPORTS):
            readers.enter_context(_stalled(untraced_server, f"{_E}/{long}/export?format=jsonl"))
        assert len(_exports_of(untraced_server)) == MOST_EXPORTS
        refused = reader.get(f"{_E}/{long}/export")
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
        assert reader.head(f"{_E}/{long}/export").status_code == 200
        asked = reader.post(f"{_E}/{long}/assignments", json={"unit": "beside"})
        assert asked.status_code == 201
        assert reader.get("/healthz").status_code == 200
    _until(lambda: not _exports_of(untraced_server))
    _until(lambda: reader.get(f"{_E}/{long}/export", params={"after": asked.json()["draw"]}).status_code == 200)


def test_the_snapshot_is_one(untraced_server: Server, reader: httpx.Client, long: str) -> None:
    """What happens while a file is being read is not in it; the version that it is of is said beforehand."""
    whole = _rows(reader.get(f"{_E}/{long}/export", params={"format": "jsonl"}).content)
    with reader.stream("GET", f"{_E}/{long}/export", params={"format": "jsonl"}) as answer:
        version, pieces = int(answer.headers["bestarm-version"]), answer.iter_raw()
        taken = next(pieces)
        late = reader.post(f"{_E}/{long}/assignments", json={"unit": "late"}).json()
        with JsonClient(untraced_server.url) as wire:
            for one in (whole[0], *whole[-30:]):
                wire.tell(long, one["id"], 1)
            for one in whole[-20:]:
                assert wire.send("PUT", f"{_E}/{long}/assignments/{one['id']}/reward", {"reward": 0}).status == 200
            for one in (whole[0], *whole[-10:], late):
                assert wire.send("DELETE", f"{_E}/{long}/assignments/{one['id']}/reward").status == 200
        rows = _rows(taken + b"".join(pieces))
    assert rows == whole
    assert max(row["sequence"] for row in rows) <= version
    assert late["draw"] == len(rows) + 1
    now = reader.get(f"{_E}/{long}/assignments", params={"page_size": 100}).json()["assignments"]
    assert {row["status"] for row in now} == {"pending", "rewarded", "voided"}


def test_an_export_that_breaks_has_no_end(untraced_server: Server, reader: httpx.Client, long: str) -> None:
    """Its process killed in the middle, the reader learns that the file is not whole."""
    for form in ("csv", "jsonl"):
        with reader.stream("GET", f"{_E}/{long}/export", params={"format": form}) as answer:
            (process,) = _exports_of(untraced_server)
            pieces = answer.iter_raw()
            next(pieces)
            os.kill(process, signal.SIGKILL)
            with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
                list(pieces)
    assert reader.get("/healthz").status_code == 200


def test_a_reader_that_stalls_is_given_up(new_database: NewDatabase) -> None:
    """Who takes nothing for as long as a client may has no export any more."""
    with Server(new_database(), BESTARM_BODY_SECONDS="0.5") as server, JsonClient(server.url) as wire:
        path = _long_export(wire, "e")
        with _stalled(server, path):
            assert _exports_of(server)
            _until(lambda: not _exports_of(server))
        assert "Traceback" not in server.log.read_text()


def test_an_export_ends_with_its_worker(new_database: NewDatabase) -> None:
    """A worker that was killed leaves no process behind."""
    with Server(new_database()) as server, JsonClient(server.url) as wire:
        path = _long_export(wire, "e")
        with _stalled(server, path):
            (process,) = _exports_of(server)
            os.kill(server.process.pid, signal.SIGKILL)
            _until(lambda: not Path(f"/proc/{process}").exists() or "State:\tZ" in Path(f"/proc/{process}/status").read_text())


def test_an_export_ends_with_its_key(keyed_server: Server, keyed_wire: JsonClient, keyed_long: str) -> None:
    """Nothing more is sent to a key that was revoked, and its reader learns that the file is not whole."""
    made = new_key(keyed_wire, scopes=["read"])
    with _stalled(keyed_server, keyed_long, **bearer(made["secret"])) as connection, connection.makefile("rb") as reading:
        assert keyed_wire.send("DELETE", f"/v1/keys/{made['id']}").status == 204
        left = reading.read()
    assert not left.endswith(b"\r\n0\r\n\r\n")
    _until(lambda: not _exports_of(keyed_server))


def test_a_key_has_some_of_the_exports(keyed_server: Server, keyed_wire: JsonClient, keyed_long: str) -> None:
    """Not all of them; another key gets its own, and one without `read` none."""
    path = keyed_long
    secrets = [new_key(keyed_wire, scopes=["read"])["secret"] for _ in range(2)]
    with ExitStack() as readers, JsonClient(keyed_server.url) as client:
        for _ in range(MOST_EXPORTS_OF_KEY):
            readers.enter_context(_stalled(keyed_server, path, **bearer(secrets[0])))
        refused = client.send("GET", path, **Credential("", secrets[0]).sent)
        assert (refused.status, refused.body["code"]) == (429, "too_many_streams")
        readers.enter_context(_stalled(keyed_server, path, **bearer(secrets[1])))
        other = new_key(keyed_wire, scopes=["assign"])["secret"]
        assert client.send("GET", path, **Credential("", other).sent).status == 403
    _until(lambda: not _exports_of(keyed_server))


def test_the_head_says_what_it_is(api: httpx.Client, experiment: str) -> None:
    """A name for the file, its type, the version of the snapshot; HEAD has the same, and nothing is read for it."""
    path = f"{_E}/{experiment}/export"
    media_types = {"csv": "text/csv; charset=utf-8; header=present", "jsonl": "application/x-ndjson"}
    for form, media_type in (media_types | {"parquet": "application/vnd.apache.parquet"}).items():
        head = api.head(path, params={"format": form})
        assert head.headers["content-type"] == media_type
        assert head.headers["content-disposition"] == f'attachment; filename="{experiment}-assignments.{form}"'
        assert (head.status_code, head.headers["cache-control"]) == (200, "no-store")
    whole = api.get(path, params={"after": 3})
    assert int(whole.headers["bestarm-version"]) == api.get(f"{_E}/{experiment}").json()["version"]
    assert whole.headers["content-disposition"].endswith('-assignments-after-3.csv"')
    assert whole.headers["transfer-encoding"] == "chunked"
    assert whole.text.startswith("sequence,draw,id,")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("format=xlsx", 422, "validation_failed"),
        ("of=secrets", 422, "validation_failed"),
        ("after=-1", 422, "validation_failed"),
        ("after=9223372036854775808", 422, "validation_failed"),
        ("after=x", 422, "validation_failed"),
        ("since=yesterday", 422, "validation_failed"),
        ("arm=nope", 404, "arm_not_found"),
        ("arm=a%00b", 422, "validation_failed"),
        ("offset=3", 422, "validation_failed"),
    ],
)
def test_what_makes_no_sense_is_refused(api: httpx.Client, experiment: str, query: str, status: int, code: str) -> None:
    """Before any process is started; HEAD is refused alike."""
    answer = api.get(f"{_E}/{experiment}/export?{query}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert api.head(f"{_E}/{experiment}/export?{query}").status_code == status
    assert api.get(f"{_E}/no-such/export").json()["code"] == "experiment_not_found"


def test_without_the_extra(new_database: NewDatabase, tmp_path: Path) -> None:
    """Parquet is 501 and the answer names the extra; the other formats are there."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pyarrow'] = None\n")
    path = os.pathsep.join([str(tmp_path), str(Path.cwd())])
    with Server(new_database(), PYTHONPATH=path) as server, JsonClient(server.url) as wire:
        wire.create("e", arms=arms(2))
        refused = wire.send("GET", f"{_E}/e/export?format=parquet")
        assert (refused.status, refused.body["code"]) == (501, "extra_missing")
        assert "bestarm[parquet]" in refused.body["detail"]
        assert wire.send("GET", f"{_E}/e/export?format=csv").status == 200
