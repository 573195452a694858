"""Every route, every place of it that takes a text, every hostile text: never a 5xx, and never an effect on a neighbour.

The table is made from the OpenAPI document, the pages' own routes included: a new route joins by itself.
"""

from __future__ import annotations

import copy
import http.client
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from service.main import create_app
from service.web.problems import each_route
from testing.json_client import JsonClient, arms
from testing.postgres import Postgres
from testing.receiver import QUIET_WEBHOOK
from testing.server import ADMIN_KEY, Server

# In JSON as they are escaped, elsewhere as their bytes.
_TEXTS = {
    "NUL": "\x00",
    "NUL inside": "a\x00b",
    "lone surrogate": "\ud800",
    "10,000 characters": "x" * 10_000,
    "slash": "a/b",
    "dots": "..",
    "dots up": "../../etc/passwd",
    "right to left": "\u202egnp.\u200f\u2066",
    "SQL": "' OR 1=1; DROP TABLE experiments; --",
    "SQL pattern": "%_\\%",
    "JSON": '"}],{"a":[\\',
    "JSON of null": "null",
    "a template": "{key}${7*7}{{7*7}}%s%n",
    "a line": "a\r\nSet-Cookie: a=b",
    "nothing": "",
    "an emoji": "😀",
}
# What only bytes can say: an overlong NUL and slash, half a character, an encoded slash.
_RAW = {"overlong NUL": "%C0%80", "overlong slash": "%C0%AF", "half a character": "%E2%82", "%2F": "%2F", "double": "%252F%2500"}
# The same as bytes, for heads and bodies.
_BYTES = {
    "overlong NUL": b"\xc0\x80",
    "overlong slash": b"\xc0\xaf",
    "half a character": b"\xe2\x82",
    "no character": b"\xff\xfe",
}
_NEIGHBOUR = "unharmed"
_numbers = count(1)
# A text that each field takes: by its name where only some will do, else any.
_HARMLESS = {
    "expires_at": "2999-01-01T00:00:00Z",
    "origins": "https://shop.example",
    "tags": "tag-1",
    "control": "control",
    "arm": "green",
    "url": "https://hooks.example.com/bestarm",
}
# What a field needs beside it.
_BESIDE: dict[tuple[str, ...], dict[str, str]] = {
    ("policy", "ties"): {"kind": "simple_tracking"},
    ("policy", "sufficiency_by"): {"kind": "almost_tracking"},
}


@dataclass(frozen=True)
class Place:
    """Where a text goes: a parameter of the path, the query or the head, or a field of the body."""

    method: str
    path: str
    kind: str
    name: str
    body: Any
    """A body that is good, if the route takes one."""
    steps: tuple[str | int, ...] = ()
    harmless: str = "text"

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.kind} {self.name}"


def _document() -> dict[str, Any]:
    """The OpenAPI document of all routes, those for the pages as well."""
    app = create_app()
    routes = [route for route in each_route(app.routes) if isinstance(route, APIRoute)]
    hidden = [route for route in routes if not route.include_in_schema]
    for route in hidden:
        route.include_in_schema = True
    try:
        return get_openapi(title="", version="", routes=routes)
    finally:
        for route in hidden:  # the routers are the process's, and other tests read them, too
            route.include_in_schema = False


def _resolved(shape: dict[str, Any], shapes: dict[str, Any]) -> dict[str, Any]:
    """The shape that is meant, of those that are not null."""
    if "$ref" in shape:
        return _resolved(shapes[shape["$ref"].rpartition("/")[2]], shapes)
    for combined in ("anyOf", "oneOf", "allOf"):
        if combined in shape:
            return _resolved(next((one for one in shape[combined] if one.get("type") != "null"), {}), shapes)
    return shape


def _fields(shape: dict[str, Any], shapes: dict[str, Any], steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The way to every field that takes a text, and its shape; any item of a list is meant by `*`."""
    shape = _resolved(shape, shapes)
    kind = shape.get("type", "string")  # a field without a type takes any JSON
    if kind == "object":
        for name, inner in shape.get("properties", {}).items():
            yield from _fields(inner, shapes, (*steps, name))
    elif kind == "array":
        yield from _fields(shape["items"], shapes, (*steps, "*"))
    elif kind == "string":
        yield steps, shape


def _body_with(examples: list[Any], way: tuple[str, ...]) -> tuple[Any, tuple[str | int, ...]]:
    """An example that has this field, or could have it, and the way to it."""
    body = copy.deepcopy(next((one for one in examples if way[0] in one), examples[0]))
    inner, steps = body, list[str | int]()
    for place, step in enumerate(way[:-1]):
        if step == "*":
            found = next((number for number, item in enumerate(inner) if way[place + 1] in item), 0)
            steps.append(found)
        else:
            inner.setdefault(step, [] if way[place + 1] == "*" else {})
            steps.append(step)
        inner = inner[steps[-1]]
    last: str | int = way[-1]
    if last == "*":
        last = 0
        if not inner:
            inner.append("")
    elif isinstance(inner, dict):
        inner.update(_BESIDE.get(way, {}))
    return body, (*steps, last)


def _texts(body: dict[str, Any], shapes: dict[str, Any]) -> Iterator[tuple[Any, tuple[str | int, ...], str]]:
    """Good bodies, the way to a text in each, and a text that does no harm there."""
    examples = _resolved(body, shapes)["examples"]
    for way, shape in _fields(body, shapes):
        name = way[-1] if way[-1] != "*" else way[-2]
        known = shape.get("const") or (shape.get("enum") or [None])[0]
        made, steps = _body_with(examples, way)
        yield made, steps, known or _HARMLESS.get(name, "text")


def _places() -> Iterator[Place]:
    document = _document()
    shapes = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            shape = content["application/json"]["schema"] if content else None
            body = None if shape is None else _resolved(shape, shapes)["examples"][-1]
            for parameter in operation.get("parameters", []):
                yield Place(method.upper(), path, parameter["in"], parameter["name"], body)
            yield Place(method.upper(), path, "header", "X-Request-Id", body)
            yield Place(method.upper(), path, "query", "unknown", body)
            yield Place(method.upper(), path, "query", "", body)
            if shape is not None:
                yield Place(method.upper(), path, "name", "of a field", body)
                for made, steps, harmless in _texts(shape, shapes):
                    yield Place(method.upper(), path, "body", "/".join(map(str, steps)), made, steps, harmless)


_PLACES = list(_places())


def _with(body: Any, steps: tuple[str | int, ...], text: str) -> Any:  # noqa: ANN401 - any JSON
    """The body with this text at the end of the way, and a key that nobody has: what is refused for that reaches nothing."""
    changed = copy.deepcopy(body)
    if isinstance(changed, dict) and "key" in changed:
        changed["key"] = f"hostile-{next(_numbers)}"
    inner = changed
    for step in steps[:-1]:
        inner = inner[step]
    if steps and not (steps == ("key",) and text == "text"):
        inner[steps[-1]] = text
    return changed


class _Bare:
    """Sends what a careful client would not, and reads whatever comes back."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

    def send(self, method: str, target: str, headers: list[tuple[str, bytes]], body: bytes | None) -> int:
        """The status of the answer; a stream is left after its head."""
        for attempt in (1, 2):
            try:
                self._connection.putrequest(method, target)
                self._connection.putheader("Authorization", f"Bearer {ADMIN_KEY}")
                for name, value in headers:
                    self._connection._buffer.append(name.encode() + b": " + value)  # type: ignore[attr-defined] # noqa: SLF001 - past its own checks
                if body is not None:
                    self._connection.putheader("Content-Type", "application/json")
                    self._connection.putheader("Content-Length", str(len(body)))
                self._connection.endheaders(body)
                answer = self._connection.getresponse()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self._connection.close()  # closed after a refusal of the parser's
                if attempt == 2:
                    raise
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            self._connection.close()
        elif method != "HEAD":
            answer.read()
        return answer.status

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


@dataclass(frozen=True)
class Target:
    """An experiment, of the place's own where the place changes it, with all that its paths name."""

    key: str
    assignment: str
    api_key: str
    webhook: str
    message: str

    def path(self, place: Place, text: str | None = None) -> str:
        """The path with this text in the place, or with what is there."""
        named = {"observations": "import-1", "keys": self.api_key, "webhooks": self.webhook}
        told = next((name for part, name in named.items() if part in place.path), self.assignment)
        filled = {"key": self.key, "chart": "means", "arm": "green", "id": told, "unit": "somebody", "message": self.message}
        if text is not None and place.kind == "path":
            filled[place.name] = text
        return re.sub(r"{(\w+)}", lambda name: filled[name[1]], place.path)


def _webhook(wire: JsonClient) -> tuple[str, str]:
    """The only webhook, because there may be so many and no more, and a message of it."""
    for one in wire.send("GET", "/v1/webhooks?page_size=1000").body["webhooks"]:
        assert wire.send("DELETE", f"/v1/webhooks/{one['id']}").status == 204
    webhook = wire.send("POST", "/v1/webhooks", QUIET_WEBHOOK).body["id"]
    return webhook, wire.send("POST", f"/v1/webhooks/{webhook}/test").body["id"]


def _target(wire: JsonClient, place: Place | None = None) -> Target:
    """A new experiment; a draft where only a draft can be changed."""
    key, is_draft = f"target-{next(_numbers)}", place is not None and place.method == "PATCH"
    two = [{"key": "control"}, {"key": "green"}]
    wire.create(key, arms=two, sticky=True, status="draft" if is_draft else "running")
    made = wire.send("POST", "/v1/keys", {"label": key, "scopes": ["read"]}).body["id"]
    webhook = _webhook(wire) if place is None or "webhooks" in place.path else ("", "")
    if is_draft:
        return Target(key, "asg_" + "0" * 27, made, *webhook)
    wire.send("POST", f"/v1/experiments/{key}/observations", {"observations": [{"arm": "green", "reward": 1, "id": "import-1"}]})
    return Target(key, wire.ask(key, "somebody")["id"], made, *webhook)


def _requests(place: Place, target: Target) -> Iterator[tuple[str, str, list[tuple[str, bytes]], bytes | None]]:
    """What is sent to this place: the name of the text, the target, the headers, the body."""
    encoded = {name: quote(text.encode("utf-8", "surrogatepass"), safe="") for name, text in _TEXTS.items()}
    here = target.path(place)

    def body(text: str | None = None) -> bytes | None:
        return (
            None
            if place.body is None
            else json.dumps(_with(place.body, () if text is None else place.steps, text or "")).encode()
        )

    if place.kind in ("path", "query"):
        for name, text in (encoded | _RAW).items():
            path = target.path(place, text) if place.kind == "path" else f"{here}?{place.name or text}={text}"
            yield name, path, [], body()
        return
    for name, text in _TEXTS.items():
        if place.kind == "header":
            value = text.encode("utf-8", "surrogatepass").replace(b"\r\n", b" ")
            yield name, here, [(place.name, value)], body()
        elif place.kind == "name":
            yield name, here, [], json.dumps({text: 1} | place.body).encode()
        else:
            yield name, here, [], body(text)
    for name, raw in _BYTES.items():
        if place.kind == "header":
            yield name, here, [(place.name, raw)], body()
        else:
            marked = json.dumps({"MARK": 1} | place.body).encode() if place.kind == "name" else body("MARK")
            yield name, here, [], (marked or b"").replace(b"MARK", raw)


@dataclass
class _Neighbour:
    """Looks at an experiment and asks it, again and again, beside all that is sent elsewhere."""

    url: str
    failed: list[str] = field(default_factory=list)
    answered: int = 0
    _done: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Until it is told to stop."""
        with JsonClient(self.url, key=ADMIN_KEY) as client:
            while not self._done.wait(0.05):
                for method, path in (
                    ("GET", "recommendation"),
                    ("POST", "assignments"),
                    ("GET", "assignments"),
                    ("GET", "events"),
                ):
                    reply = client.send(method, f"/v1/experiments/{_NEIGHBOUR}/{path}", {} if method == "POST" else None)
                    self.answered += 1
                    if reply.status not in (200, 201):
                        self.failed.append(f"{method} {path}: {reply.status}")

    def stop(self) -> None:
        """No more."""
        self._done.set()


@pytest.fixture(scope="module")
def server(keyed_server: Server) -> Server:
    """One that new keys do not close to those who have none."""
    return keyed_server


@pytest.fixture(scope="module")
def wire(keyed_wire: JsonClient) -> JsonClient:
    """A careful client of it."""
    return keyed_wire


@pytest.fixture(scope="module")
def neighbour(server: Server, wire: JsonClient) -> Iterator[_Neighbour]:
    """One that is watched in a thread of its own."""
    wire.create(_NEIGHBOUR, arms=arms(2))
    watching = _Neighbour(server.url)
    thread = threading.Thread(target=watching.watch)
    thread.start()
    yield watching
    watching.stop()
    thread.join()
    assert watching.answered > 0


@pytest.fixture(scope="module")
def read_target(wire: JsonClient) -> Target:
    """The experiment of all places that only read."""
    return _target(wire)


@pytest.fixture(scope="module")
def bare(server: Server) -> Iterator[_Bare]:
    """A client of the shared service."""
    client = _Bare(server)
    yield client
    client.close()


@pytest.mark.parametrize("place", _PLACES, ids=str)
def test_no_text_breaks_the_service(
    bare: _Bare, wire: JsonClient, neighbour: _Neighbour, read_target: Target, place: Place
) -> None:
    """Each is taken, refused or not found; an experiment beside it is served all the while, and the service is ready."""
    target = read_target if place.method == "GET" else _target(wire, place)
    failed = {}
    for name, path, headers, body in _requests(place, target):
        status = bare.send(place.method, path, headers, body)
        if status >= 500:
            failed[name] = status
    assert failed == {}
    assert neighbour.failed == []
    assert wire.send("GET", "/readyz").status == 200


@pytest.mark.parametrize("place", [place for place in _PLACES if place.kind == "body"], ids=str)
def test_a_harmless_text_is_taken(wire: JsonClient, place: Place) -> None:
    """So what is refused above is refused for the text, and what is not has met the database."""
    harmless = ADMIN_KEY if place.path == "/dashboard/session" else place.harmless
    body = _with(place.body, place.steps, harmless)
    reply = wire.send(place.method, _target(wire, place).path(place), body)
    assert reply.status in (200, 201), reply.body
    assert "invalid" not in [one["status"] for one in (reply.body.get("results") or [])]


def test_the_table_has_every_route() -> None:
    """And every kind of place."""
    routes = {
        (method, route.path_format)
        for route in each_route(create_app().routes)
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert {(place.method, place.path) for place in _PLACES} == routes
    assert {place.kind for place in _PLACES} == {"path", "query", "header", "body", "name"}


def test_hostile_keys_leave_no_connection_behind(postgres: Postgres, bare: _Bare, server: Server, neighbour: _Neighbour) -> None:
    """Two hundred of them, on every route that reads a version, while a neighbour is looked at."""
    for _ in range(50):
        for path in (
            "/experiments/%00",
            "/dashboard/experiments?text=%00",
            "/v1/experiments/%00/recommendation",
            "/experiments/a%00",
        ):
            assert bare.send("GET", path, [], None) in (404, 422)
    assert neighbour.failed == []
    if server.database_url.startswith("postgresql"):
        name = server.database_url.partition("@/")[2].partition("?")[0]
        # The pool's eight, the engine's own, the version reader's and one a lane; a leak would be hundreds.
        assert int(postgres.sql(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'")) <= 16
