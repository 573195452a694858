"""When the service cannot answer, OpenFeature's providers read it in the protocol's shape: 500, why, and when to come back."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode

from testing.databases import migrate_now
from testing.json_client import JsonClient
from testing.postgres import Postgres
from testing.server import Server

_ALL = "/ofrep/v1/evaluate/flags"
_ONE = f"{_ALL}/colour"
_BACK_SECONDS = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Postgres]:
    """A PostgreSQL of these tests alone, which may be stopped."""
    with Postgres() as own:
        own.sql("CREATE DATABASE flags")
        migrate_now(own.url("flags"))
        yield own


@pytest.fixture(scope="module")
def service(cluster: Postgres) -> Iterator[Server]:
    """A service on it with one flag, where two requests may wait."""
    with Server(cluster.url("flags"), BESTARM_QUEUE_LIMIT="2") as running:
        with JsonClient(running.url) as wire:
            wire.create("colour", arms=[{"key": "a"}, {"key": "b"}], sticky=True, ofrep={"bulk": True})
        yield running


def _evaluate(service: Server, path: str, unit: str) -> httpx.Response:
    return httpx.post(f"{service.url}{path}", json={"context": {"targetingKey": unit}}, timeout=60)


def _assert_to_come_back(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/json")
    assert answer.json().keys() == {"errorDetails"}
    assert int(answer.headers["retry-after"]) >= 1


@contextmanager
def _locked(cluster: Postgres) -> Iterator[None]:
    """Somebody else holds the experiments' rows: no group can be written."""
    command: list[str | Path] = [cluster.binaries / "psql", "-h", cluster.folder, "-U", "bestarm", "-d", "flags", "-Atq"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write("BEGIN; SELECT 'held' FROM experiments FOR UPDATE;\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate("ROLLBACK;\n", timeout=30)


@pytest.mark.parametrize("path", [_ONE, _ALL])
def test_a_full_queue(service: Server, cluster: Postgres, path: str) -> None:
    """Who has no place is told when to come back, and nothing is drawn for it; who waits is answered."""
    units = [f"full-{path.count('/')}-{number}" for number in range(10)]
    with ThreadPoolExecutor(len(units)) as threads:
        with _locked(cluster):
            asked = {threads.submit(_evaluate, service, path, unit): unit for unit in units}
            refused = next(as_completed(asked))
            _assert_to_come_back(refused.result())
        statuses = {asked[future]: future.result().status_code for future in as_completed(asked)}
    assert set(statuses.values()) == {200, 500}
    with JsonClient(service.url) as wire:
        path = "/v1/experiments/colour/assignments"
        drawn = {unit for unit in units if wire.send("POST", path, {"unit": unit}).status == HTTPStatus.OK}
    assert drawn == {unit for unit, status in statuses.items() if status == 200}


def test_a_database_that_is_away(service: Server, cluster: Postgres) -> None:
    """Both routes say so, a stock provider gives the default, and what was drawn is there again when the database is."""
    before = _evaluate(service, _ONE, "kept").json()
    cluster.stop()
    try:
        for path in (_ONE, _ALL):
            for unit in ("kept", "new"):
                _assert_to_come_back(_evaluate(service, path, unit))
        waits = {httpx.get(f"{service.url}/ofrep/v1/stream", timeout=60).text for _ in range(3)}
        assert all(5_000 <= int(wait.removeprefix("retry: ")) <= 15_000 for wait in waits), "pages listen again soon after it"
        assert len(waits) > 1, "and not all at once"
        api.set_provider(OFREPProvider(service.url))
        failed = api.get_client().get_string_details("colour", "grey", EvaluationContext("new"))
        assert (failed.value, failed.error_code) == ("grey", ErrorCode.GENERAL)
        api.shutdown()
    finally:
        cluster.start()
    until = time.monotonic() + _BACK_SECONDS
    while (after := _evaluate(service, _ONE, "kept")).status_code != 200:
        _assert_to_come_back(after)
        assert time.monotonic() < until
    assert after.json() == before


def test_the_bare_prefix(service: Server) -> None:
    """It is no route, and says so as everything below it does."""
    for path in ("/ofrep", "/ofrep/"):
        answer = httpx.post(f"{service.url}{path}", json={})
        assert (answer.status_code, answer.json()["errorCode"]) == (404, "FLAG_NOT_FOUND")
    assert httpx.post(f"{service.url}/ofreps", json={}).headers["content-type"] == "application/problem+json"


def test_what_is_refused_before_its_path_is_known(service: Server) -> None:
    """A head that is too large, bytes that are no HTTP: a problem, as on every route."""
    for head, status in ((b"POST /ofrep/v1/evaluate/flags HTTP/1.1\r\nx: " + b"x" * 40_000, 431), (b"no HTTP\r\n\r\n", 400)):
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
            connection.sendall(head)
            with connection.makefile("rb") as incoming:
                told = incoming.read()
        assert told.startswith(b"HTTP/1.1 %d " % status)
        assert b"content-type: application/problem+json" in told.lower()
