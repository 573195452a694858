"""What the general way makes of the bytes of an ask or tell: uvicorn's parser, and what the middlewares and routes check."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

import httptools
from fastapi.routing import APIRoute
from starlette.routing import Match

from service.application.commands.ask import Ask
from service.application.commands.tell import Tell
from service.domain.limits import KEY_PATTERN
from service.web.access.credentials import is_public, secret_of
from service.web.api import assignment_routes, reward_routes
from service.web.api.json_body import parse_json
from service.web.api.parameters import idempotency_key
from service.web.hosts import AllowedHosts
from service.web.middleware.same_origin import wants_what_is_not_theirs

Result = TypeVar("Result")
_ROUTES = [route for router in (assignment_routes.router, reward_routes.router) for route in router.routes]
_KEY = re.compile(KEY_PATTERN)


class Refused(Exception):  # noqa: N818 - an answer, as good as any other
    """The general way would not do what these bytes ask for."""


@dataclass(frozen=True, slots=True)
class Understood:
    """Who asks for what."""

    secret: bytes | None
    name: bytes
    """The caller's X-Request-Id, if it gave one."""
    key: str
    route: str
    command: Ask | Tell | None
    """None where nobody looks at the body, because whoever sends it is refused."""


class ParsedHead:
    """What uvicorn's parser makes of some bytes: at most one request, which may not be whole yet."""

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.url = self.body = b""
        self.begun = self.heads = self.whole = 0
        self.keeps_alive = False
        """May its connection be used again?"""
        self._parser = httptools.HttpRequestParser(self)
        try:
            self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            raise Refused("upgrade") from upgrade
        except httptools.HttpParserError as broken:
            raise Refused("no HTTP") from broken

    def on_message_begin(self) -> None:
        """Another one."""
        self.begun += 1

    def on_url(self, url: bytes) -> None:
        """A piece of it."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is whole: this is when uvicorn asks whether the connection goes on."""
        self.heads += 1
        self.keeps_alive = self._parser.should_keep_alive() and self._parser.get_http_version() == "1.1"

    def on_body(self, body: bytes) -> None:
        """A piece of it."""
        self.body += body

    def on_message_complete(self) -> None:
        """The request's end."""
        self.whole += 1

    def scope(self) -> dict[str, Any]:
        """As uvicorn makes it."""
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        return {
            "type": "http",
            "method": self._parser.get_method().decode(),
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self.headers,
        }


def understood(data: bytes, hosts: AllowedHosts, *, is_known: Callable[[bytes | None], bool]) -> Understood:
    """What these bytes ask for, which are one whole request on a connection that goes on.

    Raises `Refused`, or what says it to the caller, if it would not be done.
    """
    parsed = ParsedHead(data)
    if (parsed.begun, parsed.whole) != (1, 1) or not parsed.keeps_alive:
        raise Refused("not one whole request")
    scope = parsed.scope()
    given = [value for name, value in parsed.headers if name == b"host"]
    if len(given) != 1 or not hosts.accepts(given[0]) or wants_what_is_not_theirs(scope) or scope["query_string"]:
        raise Refused("another host, another site, or a query")
    secret = secret_of(scope)
    if is_public(secret):
        raise Refused("a key of pages")
    route, parameters = _route_of(scope)
    if not _KEY.fullmatch(parameters["key"]):
        raise Refused("no key of an experiment")
    return Understood(
        secret,
        next((value for name, value in parsed.headers if name == b"x-request-id"), b""),
        parameters["key"],
        route.path,
        _command(route, parameters, parsed) if is_known(secret) else None,
    )


def _route_of(scope: dict[str, Any]) -> tuple[APIRoute, dict[str, str]]:
    for route in _ROUTES:
        match, found = route.matches(scope)
        if match is Match.FULL and isinstance(route, APIRoute):
            return route, found["path_params"]
    raise Refused("no route")


def _command(route: APIRoute, parameters: dict[str, str], parsed: ParsedHead) -> Ask | Tell:
    """What its handler would put into the queue; whatever the body's checks raise is what they say to the caller."""
    headers = {name: value.decode("latin-1") for name, value in reversed(parsed.headers)}
    field = route.body_field
    if field is None:
        raise Refused("a route without a body")
    body = field.get_default()
    if parsed.body or field.field_info.is_required():
        body, errors = field.validate(parse_json(parsed.body, headers.get(b"content-type")), loc=("body",))
        if errors:
            raise Refused(errors)
    if route.name == "tell":
        return Tell(parameters["id"], "reward", body.reward)
    if route.name == "ask":
        return Ask(body.unit, _finished(idempotency_key(headers.get(b"idempotency-key"))))
    raise Refused("neither an ask nor a tell")


def _finished(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of one that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        result: Result = finished.value
        return result
    raise AssertionError("It waits for something.")
