"""The service behind nginx, haproxy and caddy, each really run with its configuration of deploy/proxies/."""

from __future__ import annotations

import json
import socket
import sqlite3
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from service.domain import limits
from testing.json_client import arms
from testing.processes import wait_until
from testing.reverse_proxy import KINDS, SITE, ProxyKind, ReverseProxy
from testing.rolling_restarts import restart_under_load
from testing.server import ADMIN_KEY, Server, bearer

pytestmark = pytest.mark.process
# As long as a line may be, so that few are many bytes.
_LINE = b'{"arm": "arm-0", "reward": 1}'.ljust(limits.LONGEST_LINE_BYTES - 1) + b"\n"
_LINES = 20 * 1024 * 1024 // len(_LINE)


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
    where = "/v1/experiments/any/assignments/batch"
    headers = {"Content-Type": "application/json"}
    assert client.post(where, content=largest, headers=headers).status_code in {400, 404, 422}
    try:
        refused = client.post(where, content=largest + b" ", headers=headers).status_code
    except httpx.TransportError:
        return  # it hung up before all was sent
    assert refused == 413


def test_a_stream_of_lines_has_no_largest_size_and_is_told_while_it_comes(client: httpx.Client, key: str) -> None:
    """20 MiB of them, with their length and without; the first are told before the last are sent."""
    experiment = _create(client, key)
    told_while_it_came = threading.Event()

    def lines() -> Iterator[bytes]:
        yield _LINE * 80
        wait_until(lambda: client.get(f"{experiment}/recommendation").json()["observations"] >= 80, "the first are told")
        told_while_it_came.set()
        for _ in range(_LINES // 80 - 1):
            yield _LINE * 80

    where, headers = f"{experiment}/observations", {"Content-Type": "application/x-ndjson"}
    told = client.post(where, content=lines(), headers=headers)
    assert (told.status_code, told_while_it_came.is_set()) == (200, True)
    assert client.post(where, content=_LINE * _LINES, headers=headers).status_code == 200
    assert client.get(f"{experiment}/recommendation").json()["observations"] == 2 * _LINES


def test_a_stream_may_take_longer_than_an_answer_and_a_head_may_not(
    kind: ProxyKind, services: list[Server], tmp_path: Path, key: str
) -> None:
    """With time-outs of a second: the lines of two go through; half a head is given up."""

    def lines() -> Iterator[bytes]:
        for _ in range(5):
            yield _LINE
            time.sleep(0.4)

    with (
        ReverseProxy(kind, [one.port for one in services], tmp_path / kind, {"75s": "1s", "10s": "1s"}) as proxy,
        httpx.Client(base_url=proxy.url, verify=proxy.trusting, timeout=60, headers=bearer(ADMIN_KEY)) as client,
    ):
        experiment = _create(client, key)
        headers = {"Content-Type": "application/x-ndjson"}
        assert client.post(f"{experiment}/observations", content=lines(), headers=headers).json()["recorded"] == 5
        with _connected(proxy) as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: ")
            slow.settimeout(10)
            assert slow.recv(65_536)[:12] in {b"", b"HTTP/1.1 408"}


def _connected(proxy: ReverseProxy) -> ssl.SSLSocket:
    return proxy.trusting.wrap_socket(socket.create_connection(("127.0.0.1", proxy.port)), server_hostname="localhost")


class _Recorder(BaseHTTPRequestHandler):
    """A service that only notes the headers that reach it, and hangs up when it was asked for `/broken`."""

    protocol_version = "HTTP/1.1"
    seen: list[Message]

    def do_GET(self) -> None:
        if self.headers.get("User-Agent"):  # no probe
            self.seen.append(self.headers)
        if self.path == "/broken":
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 - http.server's name

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _recorded(
    kind: ProxyKind, folder: Path, changes: Mapping[str, str] | None = None
) -> Iterator[tuple[ReverseProxy, list[Message]]]:
    """A proxy, and the headers of what it passes on."""
    seen: list[Message] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("_Recorder", (_Recorder,), {"seen": seen})) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        with ReverseProxy(kind, [upstream.server_port] * 2, folder / kind, changes) as proxy:
            yield proxy, seen
        upstream.shutdown()


def test_what_reaches_the_service_is_what_the_proxy_saw(kind: ProxyKind, tmp_path: Path) -> None:
    """The client's address, whatever it claims by any of the headers for it; the host with its port; what was sent, once."""
    claims = {"Forwarded": "for=203.0.113.7;proto=http", "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "http"}
    with _recorded(kind, tmp_path) as (proxy, seen), httpx.Client(base_url=proxy.url, verify=proxy.trusting) as client:
        assert client.get("/mine", headers=claims).status_code == 200
        (mine,) = seen
        assert mine["Host"] == f"localhost:{proxy.port}"
        assert "127.0.0.1" in mine["Forwarded"]
        assert mine["Forwarded"].endswith("proto=https")
        assert not [value for value in mine.values() if "203.0.113.7" in value]
        with suppress(httpx.RemoteProtocolError):  # haproxy hangs up as well, if the connection to the service was an old one
            assert client.post("/broken", json={}).status_code == 502
    assert len(seen) == 2


def test_a_request_without_a_host_is_for_the_site(tmp_path: Path) -> None:
    """As HTTP/1.0 allows: nginx speaks HTTP/1.1 to the service, which must have one."""
    with _recorded("nginx", tmp_path) as (proxy, seen), _connected(proxy) as old:
        old.sendall(b"GET / HTTP/1.0\r\nUser-Agent: old\r\n\r\n")
        assert old.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert [headers["Host"] for headers in seen] == [SITE]


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_a_proxy_of_yours_may_say_who_the_client_is(kind: ProxyKind, tmp_path: Path) -> None:
    """With the lines for it taken out of their comments, and its addresses in them."""
    commented = {
        "nginx": {"# set_real_ip_from": "set_real_ip_from", "# real_ip_": "real_ip_"},
        "haproxy": {"# http-request set-src": "http-request set-src"},
    }[kind]
    for trusted, said in (("127.0.0.0/8", "203.0.113.7"), ("192.0.2.0/24", "127.0.0.1")):
        with _recorded(kind, tmp_path, {**commented, "192.0.2.0/24": trusted}) as (proxy, seen):
            httpx.get(f"{proxy.url}/mine", headers={"X-Forwarded-For": "198.51.100.1, 203.0.113.7"}, verify=proxy.trusting)
        assert [headers["Forwarded"] for headers in seen] == [f"for={said};proto=https"]


@pytest.mark.parametrize("kind", ["haproxy", "caddy"])
def test_the_log_knows_who_came(kind: ProxyKind, tmp_path: Path) -> None:
    """The client's address and what it asked for, and not its key; nginx writes this unless it is told otherwise."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as system_log:
        system_log.bind(("127.0.0.1", 0))
        system_log.settimeout(0.1)
        changes = {"/dev/log": f"127.0.0.1:{system_log.getsockname()[1]}"} if kind == "haproxy" else {}
        lines: list[str] = []
        with _recorded(kind, tmp_path, changes) as (running, _):

            def came() -> list[str]:
                with suppress(TimeoutError):
                    lines[:] = running.log().splitlines() if kind == "caddy" else [*lines, system_log.recv(65_536).decode()]
                return [line for line in lines if "/who-came" in line]

            httpx.get(f"{running.url}/who-came", headers=bearer(ADMIN_KEY), verify=running.trusting)
            wait_until(came, "it is in the log")
            (line,) = came()
    assert "127.0.0.1" in line
    assert ADMIN_KEY not in line


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_a_restart_fails_nobody(kind: ProxyKind, tmp_path: Path) -> None:
    """Two services behind a proxy, one stopped and started under load: every request is answered, and what was is stored."""
    outcome = restart_under_load(kind, tmp_path, f"sqlite:///{tmp_path}/bestarm.db", restarts=1)
    assert outcome.answered > 0
    assert (outcome.refused, outcome.broken) == ([], [])
    assert outcome.lost == 0
    assert outcome.exit_codes == [0]
