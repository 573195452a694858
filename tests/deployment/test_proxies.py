"""The service behind nginx, haproxy and caddy, each really run with its configuration of deploy/proxies/."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from service.domain import limits
from testing.json_client import arms
from testing.reverse_proxy import KINDS, SITE, ProxyKind, ReverseProxy
from testing.rolling_restarts import restart_under_load
from testing.server import ADMIN_KEY, Server, bearer

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database that both services share."""
    return tmp_path_factory.mktemp("proxied") / "bestarm.db"


@pytest.fixture(scope="module")
def services(file: Path) -> Iterator[list[Server]]:
    """Two services, as on two hosts."""
    url = f"sqlite:///{file}"
    with (
        Server(url, key=ADMIN_KEY, BESTARM_ALLOWED_HOSTS=SITE) as one,
        Server(url, key=ADMIN_KEY, BESTARM_ALLOWED_HOSTS=SITE) as two,
    ):
        yield [one, two]


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> ProxyKind:
    """Each of them."""
    chosen: ProxyKind = request.param
    return chosen


@pytest.fixture(scope="module")
def proxy(kind: ProxyKind, services: list[Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReverseProxy]:
    """It, before the services."""
    with ReverseProxy(kind, [one.port for one in services], tmp_path_factory.mktemp(kind)) as running:
        yield running


@pytest.fixture
def client(proxy: ReverseProxy) -> Iterator[httpx.Client]:
    """A client of the proxy that trusts its certificate."""
    with httpx.Client(base_url=proxy.url, verify=proxy.trusting, timeout=60, headers=bearer(ADMIN_KEY)) as connected:
        yield connected


def _create(client: httpx.Client, key: str) -> str:
    assert client.post("/v1/experiments", json={"key": key, "arms": arms(2)}).status_code == 201
    return f"/v1/experiments/{key}"


def test_what_the_service_says_arrives(client: httpx.Client, key: str) -> None:
    """Create, ask, tell, look; conditions, refusals and pages, with their headers."""
    experiment = _create(client, key)
    asked = client.post(f"{experiment}/assignments", json={"unit": "user-42"}, headers={"Idempotency-Key": key})
    assert (asked.status_code, asked.json()["unit"]) == (201, "user-42")
    told = client.post(f"{experiment}/assignments/{asked.json()['id']}/reward", json={"reward": 1})
    assert told.json()["status"] == "rewarded"
    again = client.post(f"{experiment}/assignments", json={"unit": "user-42"}, headers={"Idempotency-Key": key})
    assert (again.json()["id"], again.headers["idempotency-replayed"]) == (asked.json()["id"], "true")
    many = client.post(f"{experiment}/assignments/batch", json={"count": 1_000}).json()
    assert len(many["assignments"]) == 1_000
    look = client.get(f"{experiment}/recommendation")
    assert look.json()["draws"] == 1_001
    assert client.get(f"{experiment}/recommendation", headers={"If-None-Match": look.headers["etag"]}).status_code == 304
    missing = client.get("/v1/experiments/not-there", headers={"X-Request-Id": "through-a-proxy"})
    assert (missing.status_code, missing.json()["request_id"]) == (404, "through-a-proxy")
    assert client.get("/v1/experiments", headers={"Authorization": ""}).status_code == 401
    assert client.get("/", headers={"Accept": "text/html"}).headers["content-security-policy"]


def test_a_stream_is_not_held_back(client: httpx.Client, key: str) -> None:
    """Each event arrives while the stream is open, before there is a next one."""
    experiment = _create(client, key)
    with client.stream("GET", f"{experiment}/stream") as stream:
        events = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        assert next(events)["draws"] == 0
        for draws in (1, 2):
            client.post(f"{experiment}/assignments", json={})
            assert next(events)["draws"] == draws


def test_a_slow_request_is_waited_for(client: httpx.Client, file: Path, key: str) -> None:
    """One whose body comes in pieces, and one whose answer the database holds up."""
    experiment = _create(client, key)

    def pieces() -> Iterator[bytes]:
        yield b'{"unit": '
        time.sleep(1)
        yield b'"slow"}'

    headers = {"Content-Type": "application/json", "Content-Length": "16"}
    assert client.post(f"{experiment}/assignments", content=pieces(), headers=headers).json()["unit"] == "slow"
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(client.post(f"{experiment}/assignments", json={})))
    with closing(sqlite3.connect(file, isolation_level=None, timeout=60)) as rows:
        rows.execute("BEGIN IMMEDIATE")
        asking.start()
        asking.join(2)
        assert asking.is_alive(), "nobody can write meanwhile"
        rows.execute("ROLLBACK")
    asking.join()
    assert [answer.status_code for answer in answers] == [201]


def test_the_largest_batch_passes_and_nothing_larger(client: httpx.Client) -> None:
    """The proxy takes what the service takes; beyond that it says no itself, before the body is there."""
    largest = b" " * limits.MOST_BATCH_BODY_BYTES
    where = "/v1/experiments/any/observations"
    headers = {"Content-Type": "application/json"}
    assert client.post(where, content=largest, headers=headers).status_code in {400, 404, 422}
    try:
        refused = client.post(where, content=largest + b" ", headers=headers).status_code
    except httpx.TransportError:
        return  # it hung up before all was sent
    assert refused == 413


class _Recorder(BaseHTTPRequestHandler):
    """A service that only notes the headers that reach it."""

    protocol_version = "HTTP/1.1"
    seen: list[Message]

    def do_GET(self) -> None:
        self.seen.append(self.headers)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_nobody_can_say_that_he_is_another(kind: ProxyKind, tmp_path: Path) -> None:
    """The client's address is what the proxy saw, whatever the client claims by any of the headers for it."""
    seen: list[Message] = []
    recorder = type("_Recorder", (_Recorder,), {"seen": seen})
    claims = {"Forwarded": "for=203.0.113.7;proto=http", "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "http"}
    with ThreadingHTTPServer(("127.0.0.1", 0), recorder) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        with ReverseProxy(kind, [upstream.server_port] * 2, tmp_path / kind) as proxy:
            answer = httpx.get(f"{proxy.url}/mine", headers=claims, verify=proxy.trusting)
        upstream.shutdown()
    assert answer.status_code == 200
    (mine,) = [headers for headers in seen if headers["Host"].startswith("localhost")]
    assert "127.0.0.1" in mine["Forwarded"]
    assert mine["Forwarded"].endswith("proto=https")
    assert not [value for value in mine.values() if "203.0.113.7" in value]


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_a_restart_fails_nobody(kind: ProxyKind, tmp_path: Path) -> None:
    """Two services behind a proxy, one stopped and started under load: every request is answered, and what was is stored."""
    outcome = restart_under_load(kind, tmp_path, f"sqlite:///{tmp_path}/bestarm.db", restarts=1)
    assert outcome.answered > 0
    assert (outcome.refused, outcome.broken) == ([], [])
    assert outcome.lost == 0
    assert outcome.exit_codes == [0]
