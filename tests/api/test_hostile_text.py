"""Every route, every place of it that takes a text, every hostile text: never a 5xx, and never an effect on a neighbour.

The table is made from the OpenAPI document, the pages' own routes included: a new route joins by itself.
"""

from __future__ import annotations

import copy
import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from service.main import create_app
from service.web.problems import each_route
from testing.json_client import JsonClient, arms
from testing.postgres import Postgres
from testing.server import Server

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
_NEIGHBOUR = "unharmed"
# What took others with it once.
_BEFORE = ("/experiments/%00", "/experiments/a%00", "/dashboard/experiments?text=%00", "/v1/experiments/%00/recommendation")


@dataclass(frozen=True)
class Place:
    """Where a text goes: a parameter of the path, the query or the head, or a field of the body."""

    method: str
    path: str
    kind: str
    name: str
    required: dict[str, str]
    """The other parameters that the request needs."""
    body: Any
    """A body that would be good, if the route takes one."""
    steps: tuple[str | int, ...] = ()

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


def _example(shape: dict[str, Any], shapes: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """Something of this shape, with every text in it that may be there."""
    if "$ref" in shape:
        return _example(shapes[shape["$ref"].rpartition("/")[2]], shapes)
    for combined in ("anyOf", "oneOf", "allOf"):
        if combined in shape:
            return _example(next((one for one in shape[combined] if one.get("type") != "null"), {}), shapes)
    if "enum" in shape or "const" in shape:
        return shape.get("const", shape.get("enum", [None])[0])
    kind = shape.get("type")
    if kind == "object":
        return {name: _example(field, shapes) for name, field in shape.get("properties", {}).items()}
    if kind == "array":
        return [_example(shape.get("items", {}), shapes)] * max(1, shape.get("minItems", 1))
    return {"integer": 1, "number": 1, "boolean": False, "string": "text"}.get(kind or "any", "any JSON")


def _texts_in(body: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401 - any JSON
    """The way to every text of a body, and to the first of each list."""
    if isinstance(body, str):
        yield steps
    elif isinstance(body, dict):
        for name, value in body.items():
            yield from _texts_in(value, (*steps, name))
    elif isinstance(body, list):
        yield from _texts_in(body[0], (*steps, 0))


def _places() -> Iterator[Place]:
    document = _document()
    shapes = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parameters = operation.get("parameters", [])
            content = operation.get("requestBody", {}).get("content", {})
            body = _example(content["application/json"]["schema"], shapes) if content else None
            required = {one["name"]: _good(one["name"]) for one in parameters if one["in"] == "path"}
            for parameter in parameters:
                yield Place(method.upper(), path, parameter["in"], parameter["name"], required, body)
            yield Place(method.upper(), path, "header", "X-Request-Id", required, body)
            yield Place(method.upper(), path, "query", "unknown", required, body)
            yield Place(method.upper(), path, "query", "", required, body)
            if body is not None:
                yield Place(method.upper(), path, "name", "of a field", required, body)
            for steps in _texts_in(body):
                yield Place(method.upper(), path, "body", "/".join(map(str, steps)), required, body, steps)


def _good(name: str) -> str:
    return {"key": _NEIGHBOUR, "chart": "means", "arm": "arm-0"}.get(name, "asg_" + "0" * 26 + "1")


_PLACES = list(_places())


def _with(body: Any, steps: tuple[str | int, ...], text: str) -> Any:  # noqa: ANN401 - any JSON
    """The body with this text at the end of the way."""
    changed = copy.deepcopy(body)
    inner = changed
    for step in steps[:-1]:
        inner = inner[step]
    if steps:
        inner[steps[-1]] = text
    else:
        changed = text
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
        if answer.headers["content-type"].startswith("text/event-stream"):
            self._connection.close()
        elif method != "HEAD":
            answer.read()
        return answer.status

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def _target(place: Place, text: str | None = None) -> str:
    """The path with this text in the place, or with a good one."""
    filled = place.required if text is None or place.kind != "path" else place.required | {place.name: text}
    return re.sub(r"{(\w+)}", lambda name: filled[name[1]], place.path)


def _requests(place: Place) -> Iterator[tuple[str, str, list[tuple[str, bytes]], Any]]:
    """What is sent to this place: the name of the text, the target, the headers, the body."""
    encoded = {name: quote(text.encode("utf-8", "surrogatepass"), safe="") for name, text in _TEXTS.items()}
    if place.kind == "path":
        for name, text in (encoded | _RAW).items():
            yield name, _target(place, text), [], place.body
    elif place.kind == "query":
        for name, text in (encoded | _RAW).items():
            yield name, f"{_target(place)}?{place.name or text}={text}", [], place.body
    for name, text in _TEXTS.items():
        if place.kind == "header":
            value = text.encode("utf-8", "surrogatepass").replace(b"\r\n", b" ")
            yield name, _target(place), [(place.name, value)], place.body
        elif place.kind == "name":
            yield name, _target(place), [], {text: 1} | place.body
        elif place.kind == "body":
            yield name, _target(place), [], _with(place.body, place.steps, text)


@pytest.fixture(scope="module")
def bare(server: Server, wire: JsonClient) -> Iterator[_Bare]:
    """A client of the shared service, where there is an experiment to be harmed."""
    wire.create(_NEIGHBOUR, arms=arms(2))
    client = _Bare(server)
    yield client
    client.close()


@pytest.mark.parametrize("place", _PLACES, ids=str)
def test_no_text_breaks_the_service(bare: _Bare, wire: JsonClient, place: Place) -> None:
    """Each is taken, refused or not found; an experiment beside it is served as before, and the service is ready."""
    failed = {}
    for name, target, headers, body in _requests(place):
        content = None if body is None else json.dumps(body).encode()
        status = bare.send(place.method, target, headers, content)
        if status >= 500:
            failed[name] = status
    assert failed == {}
    assert wire.send("GET", f"/v1/experiments/{_NEIGHBOUR}/recommendation").status == 200
    assert wire.send("GET", "/readyz").status == 200


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


def test_hostile_keys_leave_no_connection_behind(postgres: Postgres, bare: _Bare, server: Server, wire: JsonClient) -> None:
    """Two hundred of them, on every route that reads a version, while a neighbour is looked at."""
    for turn in range(50):
        for path in (
            "/experiments/%00",
            "/dashboard/experiments?text=%00",
            "/v1/experiments/%00/recommendation",
            "/experiments/a%00",
        ):
            assert bare.send("GET", path, [], None) in (404, 422)
        assert wire.send("GET", f"/v1/experiments/{_NEIGHBOUR}/recommendation", If_None_Match=f'"{turn}"').status == 200
    if server.database_url.startswith("postgresql"):
        name = server.database_url.partition("@/")[2].partition("?")[0]
        # The pool's eight, the engine's own, the version reader's and one a lane; a leak would be hundreds.
        assert int(postgres.sql(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'")) <= 16
