"""The access log: a line for each answered request, by every way in, that gives nothing away."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.web.access_log import shown_path
from testing.credentials import new_key
from testing.json_client import JsonClient, arms
from testing.server import ADMIN_KEY, Server, bearer

_ASSIGNMENT = "asg_" + "0" * 27
_E = "/v1/experiments/{key}"


@pytest.mark.parametrize(
    ("route", "parameters", "status", "shown"),
    [
        (_E, {"key": "checkout"}, 200, "/v1/experiments/checkout"),
        (_E, {"key": "checkout"}, 409, "/v1/experiments/checkout"),
        (_E, {"key": "checkout"}, 404, _E),
        (_E, {"key": "checkout"}, 401, _E),
        (_E, {"key": "No Key"}, 200, _E),
        (f"{_E}/arms/{{arm}}", {"key": "checkout", "arm": "green"}, 200, "/v1/experiments/checkout/arms/green"),
        (f"{_E}/assignments/{{id}}", {"key": "a", "id": _ASSIGNMENT}, 200, f"/v1/experiments/a/assignments/{_ASSIGNMENT}"),
        (f"{_E}/observations/{{id:any_text}}", {"key": "a", "id": "me@b"}, 200, "/v1/experiments/a/observations/{id:any_text}"),
        (f"{_E}/units/{{unit}}/reward", {"key": "a", "unit": "user-42"}, 200, "/v1/experiments/a/units/{unit}/reward"),
        (f"{_E}/charts/{{chart}}.svg", {"key": "a", "chart": "means"}, 304, "/v1/experiments/a/charts/means.svg"),
        ("/v1/keys/{id}", {"id": "key_" + "a" * 20}, 200, "/v1/keys/key_" + "a" * 20),
        ("other", {}, 404, "other"),
    ],
)  # fmt: skip
def test_a_path_shows_names_of_ours_alone(route: str, parameters: dict[str, str], status: int, shown: str) -> None:
    """Experiments, arms, assignments and keys that were found; nothing that callers made up for themselves."""
    assert shown_path(route, parameters, status) == shown


def _lines(server: Server) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [entry for entry in entries if entry["event"] == "request"]


def _of(server: Server, request_id: str) -> dict[str, Any]:
    (line,) = _awaited(server, lambda line: bool(line["request_id"] == request_id), 1)
    return line


def _awaited(server: Server, wanted: Callable[[dict[str, Any]], bool], count: int) -> list[dict[str, Any]]:
    """So many lines of this kind: each is written a moment after its answer."""
    deadline = time.monotonic() + 10
    while len(found := [line for line in _lines(server) if wanted(line)]) < count:
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
    return found


@pytest.mark.process
def test_every_way_in_writes_its_line(tmp_path: Path) -> None:
    """Time, method, route, path, status, milliseconds, bytes, request and key: as the client has seen them."""
    with (
        Server(f"sqlite:///{tmp_path}/bestarm.db", measured=True, key=ADMIN_KEY, BESTARM_ACCESS_LOG="1") as server,
        JsonClient(server.url, key=ADMIN_KEY) as wire,
        JsonClient(server.url, key=ADMIN_KEY, by_framework=True) as by_framework,
    ):
        wire.create("logged", arms=arms(2))
        mine = new_key(wire, scopes=["assign", "reward", "read"])
        ask = "/v1/experiments/logged/assignments"
        sent: list[tuple[str, int, str, str, str, str | None]] = []
        for name, client in (("fast", wire), ("slow", by_framework)):
            asked = client.send("POST", ask, {"unit": "user-42"}, x_request_id=name)
            sent.append((name, asked.status, "POST", f"{_E}/assignments", ask, "admin"))
            told = client.send("POST", f"{ask}/{asked.body['id']}/reward", {"reward": 1}, x_request_id=f"{name}-told")
            route = f"{_E}/assignments/{{id}}/reward"
            sent.append((f"{name}-told", told.status, "POST", route, f"{ask}/{asked.body['id']}/reward", "admin"))
        look = "/v1/experiments/logged/recommendation"
        with httpx.Client(base_url=server.url, headers=bearer(mine["secret"])) as plain:
            etag = plain.get(f"{look}?unit=nobody", headers={"X-Request-Id": "refused"})
            assert etag.status_code == 422
            etag = plain.get(look, headers={"X-Request-Id": "look"})
            plain.get(look, headers={"X-Request-Id": "again", "If-None-Match": etag.headers["etag"]})
            plain.head(look, headers={"X-Request-Id": "head"})
            plain.get("/somewhere/else", headers={"X-Request-Id": "nowhere"})
            plain.get("/healthz", headers={"X-Request-Id": "alive"})
            plain.get("/healthz", headers={"X-Request-Id": "elsewhere", "Host": "evil.example"})
        httpx.get(f"{server.url}{look}", headers={"X-Request-Id": "nobody"})
        route = f"{_E}/recommendation"
        sent += [
            ("refused", 422, "GET", route, route, mine["id"]),
            ("look", 200, "GET", route, look, mine["id"]),
            ("again", 304, "GET", route, look, mine["id"]),
            ("head", 200, "HEAD", route, look, mine["id"]),
            ("nowhere", 404, "GET", "other", "other", None),
            ("alive", 200, "GET", "/healthz", "/healthz", None),
            ("elsewhere", 421, "GET", "other", "other", None),
            ("nobody", 401, "GET", "other", "other", None),
        ]
        with socket.create_connection(("127.0.0.1", server.port)) as broken:
            broken.sendall(b"no HTTP\r\n\r\n")
            assert b" 400 " in broken.recv(65536)
        for name, status, method, route, path, key in sent:
            line = _of(server, name)
            seen = (line["status"], line["method"], line["route"], line["path"], line["key"])
            assert seen == (status, method, route, path, key), name
            assert abs(datetime.now(UTC) - datetime.fromisoformat(line["timestamp"])) < timedelta(minutes=1)
            assert 0 < line["milliseconds"] < 60_000
            assert "insecure" not in line
        assert _of(server, "look")["bytes"] == len(etag.content)
        assert _of(server, "again")["bytes"] == _of(server, "head")["bytes"] == 0
        assert _awaited(server, lambda line: (line["status"], line["method"]) == (400, "other"), 1)
        text = server.log.read_text()
    assert "user-42" not in text
    assert "nobody=" not in text
    assert mine["secret"] not in text


@pytest.mark.process
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"BESTARM_HOST": "0.0.0.0", "BESTARM_INSECURE": "1"}, True),  # noqa: S104 - that is what is tested
        ({"BESTARM_INSECURE": "1", "BESTARM_ADMIN_KEY": ADMIN_KEY}, False),
        ({}, False),
    ],
    ids=["insecure", "with a key", "on loopback"],
)
def test_an_insecure_service_says_so_in_every_line(
    settings: dict[str, str],
    expected: bool,  # noqa: FBT001 - parametrized
    new_server: Callable[..., Server],
) -> None:
    """By both ways in; and at its start, where it is open, with a warning beyond loopback."""
    server = new_server(BESTARM_ACCESS_LOG="1", BESTARM_LOG_LEVEL="info", **settings)
    with JsonClient(server.url, key=settings.get("BESTARM_ADMIN_KEY")) as wire:
        wire.create("open", arms=arms(2))
        wire.ask("open")
    lines = _awaited(server, lambda line: bool(line["method"] == "POST"), 2)
    assert {line.get("insecure", False) for line in lines} == {expected}
    entries = [json.loads(line) for line in server.log.read_text().splitlines()]
    opened = [entry["level"] for entry in entries if entry["event"].startswith("open:")]
    assert opened == ([] if "BESTARM_ADMIN_KEY" in settings else ["warning" if expected else "info"])


@pytest.fixture
def new_server(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Server]:
    """Starts a service that is stopped after the test."""

    def start(**environment: str) -> Server:
        server = Server(f"sqlite:///{tmp_path}/bestarm.db", **environment)  # type: ignore[arg-type] # all of them are text
        request.addfinalizer(server.stop)
        return server

    return start
