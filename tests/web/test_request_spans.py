"""Traces, as a collector gets them: what is in them, what never is, and that nobody pays where there are none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from service import __version__
from testing.collector import Collector, ReceivedSpan
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.processes import wait_until
from testing.server import ADMIN_KEY, Server

pytestmark = pytest.mark.process
_ASK = "POST /v1/experiments/{key}/assignments"
_TELL = "POST /v1/experiments/{key}/assignments/{id}/reward"
_TRACE, _PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
_UNIT, _REWARD = "unit-that-nobody-may-see", 0.123456789
_QUICKLY = "100"
"""Milliseconds between one delivery to the collector and the next."""
_GRACE_SECONDS = 8
_LONG_WAY = {"proxy_connection": "keep-alive"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Somebody who takes traces."""
    with Collector() as listening:
        yield listening


@pytest.fixture(scope="module")
def traced(sqlite_databases: NewDatabase, collector: Collector) -> Iterator[Server]:
    """A service that sends them."""
    with Server(
        sqlite_databases(),
        measured=True,
        key=ADMIN_KEY,
        BESTARM_OTLP_ENDPOINT=collector.url,
        OTEL_BSP_SCHEDULE_DELAY=_QUICKLY,
    ) as running:
        yield running
        assert running.log.read_text() == ""


@pytest.fixture(scope="module")
def wire(traced: Server) -> Iterator[JsonClient]:
    """Its client."""
    with JsonClient(traced.url, key=ADMIN_KEY) as connection:
        connection.create("traced", arms=arms(3), reward={"kind": "bounded", "min": 0, "max": 1})
        yield connection


def _trace(collector: Collector, request_id: str) -> list[ReceivedSpan]:
    """All spans of the request with this id, once they are there."""

    def of_request() -> list[ReceivedSpan]:
        return [span for span in collector.spans() if span.attributes.get("bestarm.request_id") == request_id]

    wait_until(of_request, f"{request_id} is traced")
    return collector.spans(of_request()[0].trace)


def _send(wire: JsonClient, name: str, path: str, body: object, **headers: str) -> int:
    return wire.send("POST", f"/v1/experiments/{path}", body, x_request_id=name, **headers).status


@pytest.mark.parametrize("way", ["fast", "long"])
def test_an_ask_is_a_request_with_its_group(wire: JsonClient, collector: Collector, way: str) -> None:
    """One within the other and one after the other: queue, decide and write, with what had to be looked up between them."""
    headers = _LONG_WAY if way == "long" else {}
    assert _send(wire, f"ask-{way}", "traced/assignments", {"unit": f"{_UNIT}-{way}"}, idempotency_key=way, **headers) == 201
    request, group, *phases = _trace(collector, f"ask-{way}")
    assert (request.name, request.kind, request.parent, request.failed) == (_ASK, 2, "", False)
    assert (group.name, group.parent) == ("group", request.id)
    assert [phase.parent for phase in phases] == [group.id] * len(phases)
    names = [phase.name for phase in phases]
    assert (names[0], names[-2:]) == ("queue", ["decide", "write"])
    assert set(names[1:-2]) <= {"look up"}
    for before, after in pairwise(phases):
        assert before.ended <= after.began
    assert request.began <= group.began <= phases[0].began
    assert phases[-1].ended <= group.ended <= request.ended
    assert abs(request.ended - time.time_ns()) < 600e9
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": _ASK.partition(" ")[2],
        "http.response.status_code": 201,
        "bestarm.request_id": f"ask-{way}",
        "bestarm.experiment": "traced",
        "bestarm.key": request.attributes["bestarm.key"],
    }
    assert group.attributes["bestarm.group.requests"] == 1


def test_an_ask_of_what_is_not_known_is_looked_up(wire: JsonClient, collector: Collector) -> None:
    """Of an experiment that this worker has not seen, in a span of its own."""
    wire.create("fresh", arms=arms(2))
    assert _send(wire, "fresh", "fresh/assignments", {}) == 201
    assert [span.name for span in _trace(collector, "fresh")].count("look up") >= 1


@pytest.mark.parametrize("way", ["fast", "long"])
def test_a_request_belongs_to_its_caller_s_trace(wire: JsonClient, collector: Collector, way: str) -> None:
    """By the W3C's `traceparent`; whether it is traced is the caller's choice then."""
    headers = _LONG_WAY if way == "long" else {}
    for number, flag in enumerate(("01", "00")):
        given = f"00-{_TRACE[:-1]}{'a' if way == 'fast' else 'b'}-{_PARENT}-{flag}"
        assert _send(wire, f"caller-{way}-{number}", "traced/assignments", {}, traceparent=given, **headers) == 201
    assert _send(wire, f"after-{way}", "traced/assignments", {}) == 201
    _trace(collector, f"after-{way}")
    (request, *_) = _trace(collector, f"caller-{way}-0")
    assert (request.trace, request.parent) == (f"{_TRACE[:-1]}{'a' if way == 'fast' else 'b'}", _PARENT)
    assert f"caller-{way}-1" not in {span.attributes.get("bestarm.request_id") for span in collector.spans()}


def test_a_read_has_no_group_and_a_refusal_says_no_name(wire: JsonClient, collector: Collector) -> None:
    """What a refused request calls an experiment may be anything; a conflict is about one that is there."""
    wire.send("GET", "/v1/experiments/traced", x_request_id="read")
    (read,) = _trace(collector, "read")
    assert (read.name, read.attributes["bestarm.experiment"]) == ("GET /v1/experiments/{key}", "traced")
    assert _send(wire, "missing", "not-there/assignments", {}) == 404
    missing = _trace(collector, "missing")[0]
    assert (missing.attributes["http.response.status_code"], missing.failed) == (404, False)
    assert "bestarm.experiment" not in missing.attributes


def test_nothing_of_what_was_said_is_in_a_trace(wire: JsonClient, collector: Collector) -> None:
    """No unit, no reward, no secret, in a path, a body or a header; probes are not traced at all."""
    asked = wire.ask("traced", _UNIT)
    assert wire.tell("traced", asked["id"], _REWARD)["status"] == "rewarded"
    wire.send("POST", f"/v1/experiments/traced/units/{_UNIT}/reward", {"reward": _REWARD})
    wire.send("GET", f"/v1/experiments/traced/assignments?unit={_UNIT}")
    wire.send("GET", "/readyz")
    assert _send(wire, "last", "traced/assignments", {"unit": _UNIT}) == 201
    _trace(collector, "last")
    told = [span for span in collector.spans() if span.name == _TELL]
    assert told
    sent = b"".join(collector.bodies)
    for secret in (_UNIT, str(_REWARD), ADMIN_KEY, ADMIN_KEY[:12]):
        assert secret.encode() not in sent
    assert not [span for span in collector.spans() if "readyz" in span.name]
    assert (collector.service["service.name"], collector.service["service.version"]) == ("bestarm", __version__)


def test_requests_that_share_a_group_say_so(wire: JsonClient, collector: Collector) -> None:
    """Each trace is whole by itself, and has the group's times in it."""
    many = wire.send("POST", "/v1/experiments/traced/assignments/batch", {"count": 50}, x_request_id="batch")
    assert many.status == 201
    assert [span.name for span in _trace(collector, "batch")][:3] == [f"{_ASK}/batch", "group", "queue"]


def test_a_collector_that_is_away_costs_nobody_an_answer(sqlite_databases: NewDatabase) -> None:
    """Nor a stop its success: it ends within its grace."""
    with Server(sqlite_databases(), BESTARM_OTLP_ENDPOINT="http://127.0.0.1:9", OTEL_BSP_SCHEDULE_DELAY=_QUICKLY) as server:
        with JsonClient(server.url) as wire:
            wire.create("alone", arms=arms(2))
            assert [wire.ask("alone")["draw"] for _ in range(20)] == list(range(1, 21))
        assert server.stop() == 0


def test_a_collector_that_hangs_holds_up_no_stop(sqlite_databases: NewDatabase) -> None:
    """It takes what it is sent and says nothing: the service ends, however many batches of spans were left."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Server(sqlite_databases(), BESTARM_OTLP_ENDPOINT=url) as server:
            with JsonClient(server.url) as wire:
                wire.create("alone", arms=arms(2))
                for _ in range(1_500):
                    wire.ask("alone")
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < _GRACE_SECONDS


def test_a_share_of_nothing_sends_nothing(sqlite_databases: NewDatabase) -> None:
    """Unless a caller asks for it by a trace of its own."""
    with Collector() as collector:
        with (
            Server(sqlite_databases(), BESTARM_OTLP_ENDPOINT=collector.url, BESTARM_TRACED_SHARE="0") as server,
            JsonClient(server.url) as wire,
        ):
            wire.create("few", arms=arms(2))
            for number in range(20):
                flag = {"traceparent": f"00-{_TRACE}-{_PARENT}-01"} if number == 19 else {}
                assert _send(wire, f"few-{number}", "few/assignments", {}, **flag) == 201
        assert {span.trace for span in collector.spans()} == {_TRACE}


_LOADED = """
import sys
from service.settings import Settings
from service.main import create_app
from service.serving import _protocol
from service.web.fast_path.protocol import FastPathProtocol
from uvicorn.importer import import_from_string

create_app(Settings())
assert import_from_string(_protocol(Settings())) is FastPathProtocol
print([name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter")) or "traced" in name])
"""


def test_where_nobody_wants_traces_nothing_of_them_is_loaded(tmp_path: Path) -> None:
    """Neither the library nor what makes spans here: connections and writer are those that know nothing of it."""
    environment = os.environ | {"BESTARM_DATABASE_URL": f"sqlite:///{tmp_path}/bestarm.db"}
    done = subprocess.run([sys.executable, "-c", _LOADED], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


_WITHOUT_EXTRA = """
import sys
sys.modules["opentelemetry.exporter"] = None
from service.cli import app
app(["serve", "--port", "0"])
"""


def test_without_the_extra_it_is_named() -> None:
    """In a sentence that says how to get it, before anything is touched."""
    environment = os.environ | {"BESTARM_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", _WITHOUT_EXTRA], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("BESTARM_OTLP_ENDPOINT")
    assert done.stderr.endswith("pip install 'bestarm[otel]'.\n")
