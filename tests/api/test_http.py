"""What HTTP itself asks of a service: methods, hosts, paths, heads, closing. On both ways in where both lead there."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from service.main import create_app
from service.web.problems import each_route
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.server import Server

_ASK = "POST /v1/experiments/{key}/assignments HTTP/1.1"
# By the short way, and by the framework.
_WAYS: dict[str, list[str]] = {"hot": [], "framework": ["Proxy-Connection: keep-alive"]}


@pytest.fixture(scope="module", params=_WAYS)
def way(request: pytest.FixtureRequest) -> list[str]:
    """The headers of both ways to an ask."""
    return _WAYS[request.param]


def _raw(server: Server, *lines: str, body: str = "") -> tuple[int, dict[str, str], Any]:
    """One request in exactly these lines: status, headers, body of its answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as wire, wire.makefile("rb") as reading:
        wire.sendall("\r\n".join([*lines, "", body]).encode())
        status = int(reading.readline().split()[1])
        headers = {}
        while line := reading.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, json.loads(reading.read(int(headers["content-length"])))


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        (["Host: localhost"], 201, None),
        (["Host: LOCALHOST:1234"], 201, None),
        (["Host: 127.0.0.1"], 201, None),
        (["Host: [::1]:8000"], 201, None),
        ([], 400, "invalid_host"),
        (["Host:"], 400, "invalid_host"),
        (["Host: a b"], 400, "invalid_host"),
        (["Host: localhost", "Host: localhost"], 400, "invalid_host"),
        (["Host: localhost", "host: evil.example"], 400, "invalid_host"),
        (["Host: evil.example"], 421, "host_not_allowed"),
        (["Host: localhost.evil.example:8000", "Origin: http://localhost.evil.example:8000"], 421, "host_not_allowed"),
    ],
)
def test_a_loopback_service_answers_to_loopback_names(  # noqa: PLR0917 - parametrized
    server: Server, wire: JsonClient, experiment: str, way: list[str], given: list[str], status: int, code: str | None
) -> None:
    """Once each, whatever else was accepted before; a name that leads here from elsewhere (DNS rebinding) does nothing."""
    line = _ASK.format(key=experiment)
    draws = []
    for _ in range(3):
        answered, headers, body = _raw(
            server, line, *given, *way, "Content-Type: application/json", "Content-Length: 2", body="{}"
        )
        assert answered == status, body
        if code is None:
            draws.append(body["draw"])
        else:
            assert (headers["content-type"], body["code"]) == ("application/problem+json", code)
            assert body["request_id"] == headers["x-request-id"]
    assert draws == ([] if code else [1, 2, 3])
    assert wire.ask(experiment)["draw"] == len(draws) + 1


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/experiments", "/static/app.css", "/nowhere"])
def test_reads_are_for_known_names_too(server: Server, path: str) -> None:
    """Another site's page may not read through its own name either; HTTP/1.0 has no name to give."""
    assert _raw(server, f"GET {path} HTTP/1.1", "Host: evil.example")[0] == 421
    assert _raw(server, f"GET {path} HTTP/1.1")[0] == 400
    assert _raw(server, "GET /healthz HTTP/1.0")[0] == 200


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://evil.example", "localhost", 421),
        ("HTTP://somebody@evil.example:80", "localhost", 421),
        ("http://localhost", "evil.example", 201),
        ("http://127.0.0.1:80", "localhost", 201),
        ("http://", "localhost", 400),
    ],
)
def test_a_target_that_is_a_url_says_which_host_is_meant(  # noqa: PLR0917 - parametrized
    server: Server, experiment: str, way: list[str], target: str, host: str, status: int
) -> None:
    """Whatever `Host` says (RFC 9112)."""
    path = f"/v1/experiments/{experiment}/assignments"
    answered, _, _ = _raw(server, f"POST {target}{path} HTTP/1.1", f"Host: {host}", *way, "Content-Length: 0")
    assert answered == status
    assert _raw(server, f"GET {target}/healthz HTTP/1.1", f"Host: {host}")[0] == (200 if status == 201 else status)


def test_the_server_as_a_whole_has_no_options(server: Server) -> None:
    """`OPTIONS *` is told which methods there are."""
    status, headers, body = _raw(server, "OPTIONS * HTTP/1.1", "Host: localhost")
    assert (status, body["code"]) == (405, "method_not_allowed")
    assert set(headers["allow"].split(", ")) == {"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_files_are_only_read(api: httpx.Client, method: str) -> None:
    """405 that says so."""
    answer = api.request(method, "/static/style.css")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("slash", ["%2F", "%2f"])
def test_an_encoded_slash_is_no_way_to_another_route(api: httpx.Client, experiment: str, slash: str) -> None:
    """No key has one: what is behind the route that it would spell is not found. An observation's id may have one."""
    path = "/v1/experiments"
    for spelled in ("recommendation", "assignments", "events", "observations", "arms/arm-0", f"arms{slash}arm-0", "stream"):
        assert api.get(f"{path}/{experiment}{slash}{spelled}").status_code == 404, spelled
    assert api.get(f"/v1{slash}experiments").status_code == 404
    assert api.post(f"{path}/{experiment}{slash}assignments").status_code == 404
    assert api.post(f"{path}/{experiment}{slash}pause").status_code == 404
    observed = {"observations": [{"arm": "arm-0", "reward": 1, "id": "a/b"}]}
    assert api.post(f"{path}/{experiment}/observations", json=observed).status_code == 200
    assert api.get(f"{path}/{experiment}/observations/a{slash}b").json()["id"] == "a/b"
    assert api.get(f"{path}/{experiment}{slash}observations/a{slash}b").status_code == 404


@pytest.mark.process
def test_names_can_be_allowed(new_database: NewDatabase) -> None:
    """On both ways in."""
    with Server(new_database(), measured=True, BESTARM_ALLOWED_HOSTS="bestarm.example, *.corp.example") as running:
        with JsonClient(running.url) as client:
            client.create("named", arms=arms(2))
        for host, status in (("bestarm.example:80", 201), ("a.corp.example", 201), ("localhost", 201), ("evil.example", 421)):
            for way in _WAYS.values():
                assert _raw(running, _ASK.format(key="named"), f"Host: {host}", *way, "Content-Length: 0")[0] == status


def _paths() -> Iterator[tuple[str, set[str]]]:
    """Every path with the methods of all its routes."""
    methods: dict[str, set[str]] = {}
    for route in each_route(create_app().routes):
        if isinstance(route, APIRoute):
            methods.setdefault(route.path_format, set()).update(route.methods or ())
    for path in methods:
        fitting = (known for template, known in methods.items() if re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path))
        known = set[str]().union(*fitting)  # assignments/batch could be an assignment's id
        yield path, known | ({"HEAD"} if "GET" in known else set())


_PATHS = dict(_paths())


def _filled(path: str, key: str) -> str:
    """The path of something that there is, as far as a key and a chart go."""
    return re.sub(r"{(\w+)}", lambda name: {"key": key, "chart": "means"}.get(name[1], "arm-0"), path)


@pytest.mark.parametrize("path", _PATHS)
def test_a_wrong_method_is_told_all_right_ones(api: httpx.Client, experiment: str, path: str) -> None:
    """405 with a complete `Allow`, for OPTIONS as well: there is no CORS."""
    for method in {"OPTIONS", "PATCH", "DELETE", "TRACE", "PUT", "POST"} - _PATHS[path]:
        answer = api.request(method, _filled(path, experiment))
        shape = "application/json" if path.startswith("/ofrep/") else "application/problem+json"
        assert (answer.status_code, answer.headers["content-type"]) == (405, shape)
        assert set(answer.headers["allow"].split(", ")) == _PATHS[path]
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", [path for path, methods in _PATHS.items() if "GET" in methods])
def test_head_is_get_without_its_body(api: httpx.Client, experiment: str, path: str) -> None:
    """The same status and kind of content, be it a stream; and the connection serves the next request."""
    head = api.head(_filled(path, experiment))
    assert head.content == b""
    with api.stream("GET", _filled(path, experiment)) as full:
        assert (head.status_code, head.headers["content-type"]) == (full.status_code, full.headers["content-type"])
    assert api.head("/healthz").status_code == 200


def test_what_has_not_changed_is_not_modified_for_head_either(api: httpx.Client, experiment: str) -> None:
    """As for GET."""
    path = f"/v1/experiments/{experiment}/recommendation"
    assert api.head(path, headers={"If-None-Match": api.get(path).headers["etag"]}).status_code == 304


@pytest.mark.parametrize("path", [path for path in _PATHS if path != "/" and not path.endswith("/observations/{id}")])
def test_a_slash_more_is_another_path(api: httpx.Client, experiment: str, path: str) -> None:
    """404, and no redirect that would lose a body; only an observation's id may end in one."""
    for method in _PATHS[path] - {"HEAD"}:
        answer = api.request(method, _filled(path, experiment) + "/")
        ofrep = path.startswith("/ofrep/")
        code = answer.json()["errorCode" if ofrep else "code"]
        assert (answer.status_code, code) == (404, "FLAG_NOT_FOUND" if ofrep else "not_found")


def test_an_unknown_chart_is_not_found(api: httpx.Client, experiment: str) -> None:
    """With the names of those that there are."""
    answer = api.get(f"/v1/experiments/{experiment}/charts/bogus.svg")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "means, traffic, certainty" in answer.json()["detail"]


def test_a_batch_that_draws_nothing_is_200(wire: JsonClient, key: str) -> None:
    """Concluded, or all units known; again with its key; 201 as soon as one is drawn."""
    wire.create(key, arms=arms(2), sticky=True)
    path = f"/v1/experiments/{key}/assignments/batch"
    assert wire.send("POST", path, {"units": ["a", "b"]}).status == 201
    assert wire.send("POST", path, {"units": ["a", "b"]}).status == 200
    assert wire.send("POST", path, {"units": ["a", "c"]}).status == 201
    assert wire.send("POST", f"/v1/experiments/{key}/conclude", {"arm": "arm-0"}).status == 200
    for _ in range(2):
        reply = wire.send("POST", path, {"units": ["a", "d"]}, Idempotency_Key="k")
        assert (reply.status, {one["reason"] for one in reply.body["assignments"]}) == (200, {"concluded"})


def test_one_and_one_point_zero_are_the_same_body(api: httpx.Client, experiment: str) -> None:
    """Many a client writes a whole number with a point the second time."""
    path, headers = f"/v1/experiments/{experiment}/observations", {"Idempotency-Key": "k", "Content-Type": "application/json"}
    first, again, other = (
        api.post(path, content=f'{{"observations":[{{"arm":"arm-0","reward":{reward}}}]}}', headers=headers)
        for reward in ("1", "1.0", "0")
    )
    assert (first.status_code, again.status_code, again.headers["idempotency-replayed"]) == (200, 200, "true")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


def test_refusals_are_in_our_own_words(api: httpx.Client, experiment: str) -> None:
    """Without the library's name for the kind of mistake, in problems and in results of batches."""
    texts = [
        api.post("/v1/experiments", json={"key": "never", "arms": [{"key": "a"}, {"key": "a"}]}).text,
        api.post("/v1/experiments", json={"key": "never", "arms": arms(2), "reward": {"kind": "bounded"}}).text,
        api.post(f"/v1/experiments/{experiment}/assignments/batch", json={}).text,
        api.post(f"/v1/experiments/{experiment}/rewards", json={"rewards": [{"reward": 1}, {"reward": 1, "x": 1}]}).text,
        api.post(f"/v1/experiments/{experiment}/arms", json={"key": "c", "value": "x" * 17_000}).text,
    ]
    assert all("errors" in text or "results" in text for text in texts)
    assert not any("Value error" in text for text in texts)
