"""Reading a request's body: its size, its type, its JSON, and the values that no field may hold.

FastAPI would take NaN, 1e400, lone surrogates and any content type. Here a body is read once, checked whole, and only then
validated against its schema.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from service.domain.callers import Caller, Scope
from service.domain.limits import (
    DEEPEST_JSON,
    KEY_PATTERN,
    LARGE_BODY_BYTES,
    MOST_BATCH_BODY_BYTES,
    MOST_BODY_BYTES,
    MOST_HELD_BODY_BYTES,
    MOST_LARGE_BODIES,
)
from service.errors import ArmNotFound, ExperimentNotFound, Forbidden, Overloaded, Unauthorized
from service.web.access.credentials import CALLER
from service.web.access.route_scopes import OPEN, ROUTE_SCOPES
from service.web.problems import BadRequest

_NEITHER_QUOTES_NOR_BRACKETS = bytes(set(range(256)).difference(b'"{}[]'))
_FLAT = 4
_SPLIT_AT_ONCE = 16 * 1024
# Where the fingerprint of a body is left for those who repeat answers.
FINGERPRINT = "bestarm.fingerprint"
_KEY = re.compile(KEY_PATTERN)
_TOO_DEEP = f"The JSON is nested deeper than {DEEPEST_JSON} levels."
_LARGE = {
    "/v1/experiments",
    "/v1/experiments/{key}/assignments/batch",
    "/v1/experiments/{key}/rewards",
    "/v1/experiments/{key}/observations",
}


def _read_integer(digits: str) -> int:
    return int(digits)


def _as_read(names: dict[str, Any]) -> dict[str, Any]:
    return names


# Python's own functions in the parser: between them the event loop's thread gets its turn, which C alone would keep for a second.
_INTERRUPTIBLE: dict[str, Any] = {"parse_int": _read_integer, "object_hook": _as_read}


class BodyMemory:
    """The bodies that a process holds at once: bounded in bytes; of the large ones a few are read and handled at a time."""

    def __init__(self) -> None:
        self.large = asyncio.Semaphore(MOST_LARGE_BODIES)
        self._held = 0

    @contextmanager
    def holding(self) -> Iterator[Callable[[int], None]]:
        """How to say that so many more bytes are held; at the end they are let go."""
        mine = 0

        def hold(more: int) -> None:
            nonlocal mine
            if self._held + more > MOST_HELD_BODY_BYTES:
                raise Overloaded("Too many large bodies are being sent; try again in a moment.")
            mine += more
            self._held += more

        try:
            yield hold
        finally:
            self._held -= mine


class StrictRoute(APIRoute):
    """A route whose path, query and body were checked whole before its handler sees them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's own handler."""
        handler = super().get_route_handler()
        limit = MOST_BATCH_BODY_BYTES if self.path in _LARGE else MOST_BODY_BYTES
        required = bool(self.body_field and self.body_field.field_info.is_required())
        parameters = _query_parameters(self.dependant)

        async def with_body(request: Request) -> Response:
            streamed = self.answer_to_stream(request)
            if streamed is not None:
                return await streamed
            memory: BodyMemory = request.app.state.body_memory
            with memory.holding() as hold:
                body = request._body = await read_limited(request, limit, hold)  # noqa: SLF001 - Starlette's own cache
                if len(body) <= LARGE_BODY_BYTES:
                    if body or required:
                        self._keep(request, body)
                    await _check_again(request)
                    return await handler(request)
                async with memory.large:
                    await asyncio.to_thread(self._keep, request, body)
                    await _check_again(request)
                    return await handler(request)

        # An id of any text may hold slashes, as the last part of a path; no other part may.
        parts, any_text = self.path.count("/"), self.path.endswith(":any_text}")

        scopes = {ROUTE_SCOPES.get((method, self.path)) for method in self.methods or ()}
        is_open = {(method, self.path) for method in self.methods or ()} <= OPEN

        async def strict(request: Request) -> Response:
            if not is_open:
                _check_access(request, scopes)
            raw = request.scope.get("raw_path") or b""
            if b"%" in raw and any(b"%2f" in part.lower() for part in raw.split(b"/", parts)[: parts if any_text else None]):
                raise HTTPException(404)  # it would be read as the path of another route
            key, arm = request.path_params.get("key", "a"), request.path_params.get("arm", "a")
            if not _KEY.fullmatch(key):
                raise ExperimentNotFound(key)  # before it meets a database that could not even compare it
            if not _KEY.fullmatch(arm):
                raise ArmNotFound(key, arm)
            _check_query(request, parameters)
            return await (handler if self.body_field is None else with_body)(request)

        return strict

    def _keep(self, request: Request, body: bytes) -> None:
        """Leave the parsed body where FastAPI looks for it, and its fingerprint where an idempotency key needs it."""
        request._json = self.read(request, body)  # noqa: SLF001 - Starlette's own cache
        if "idempotency-key" in request.headers:
            request.scope[FINGERPRINT] = fingerprint(body)

    def answer_to_stream(self, request: Request) -> Coroutine[Any, Any, Response] | None:  # noqa: ARG002 - for routes that look
        """How a body is answered that this route reads as it comes; None means that it is read whole."""
        return None

    def read(self, request: Request, body: bytes) -> Any:  # noqa: ANN401 - any JSON
        """The body as Python objects, as far as FastAPI looks at them."""
        return parse_json(body, request.headers.get("content-type"))


def _query_parameters(dependant: Dependant) -> set[str]:
    """The names that a route and what it depends on declare."""
    named = {parameter.alias for parameter in dependant.query_params}
    return named.union(*map(_query_parameters, dependant.dependencies))


def _check_access(request: Request, scopes: Collection[Scope | None]) -> None:
    """Refuse a caller who may not use this route, or may not see its experiment; a route that needs nothing known, everybody."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is None:
        raise Unauthorized("missing")
    for scope in scopes:
        if scope is None:
            raise Forbidden("This route is not open to anybody.")
        caller.require(scope, request.path_params.get("key"))


async def _check_again(request: Request) -> None:
    """Refuse a caller whose key was revoked while the body came in, which may take a minute."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is not None:
        await request.app.state.context.callers.require_still_taken(caller)


def _check_query(request: Request, parameters: set[str]) -> None:
    """Refuse what the route does not know, what comes twice, and what no database could compare."""
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        objection = _objection_to_text(name) or _objection_to_text(value)
        if name not in parameters:
            objection = objection or "There is no such parameter here."
        if name in seen:
            objection = objection or "This parameter is given twice."
        if objection:
            _refuse(("query", name), objection)
        seen.add(name)


async def read_limited(request: Request, limit: int, hold: Callable[[int], None]) -> bytes:
    """The whole body, refused as soon as it is known to be too large."""
    announced = request.headers.get("content-length", "0")
    body, size = bytearray(), int(announced) if announced.isdigit() else 0
    if size <= limit:
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                break
            hold(len(chunk))
            body += chunk
    if size > limit:
        raise BadRequest(413, "body_too_large", f"The body is larger than {limit // 1024:,} KiB.")
    return bytes(body)


def parse_json(body: bytes, content_type: str | None) -> Any:  # noqa: ANN401 - any JSON
    """The body as Python objects; refuses what is not JSON and what JSON should not hold."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not (media_type.startswith("application/") and media_type.endswith("+json")):
        raise BadRequest(415, "unsupported_media_type", "The body must be sent as application/json.")
    infinite = False

    def read_float(digits: str) -> float:
        nonlocal infinite
        number = float(digits)
        infinite = infinite or math.isinf(number)
        return number

    try:
        hooks = _INTERRUPTIBLE if len(body) > LARGE_BODY_BYTES else {}
        parsed = json.loads(body, parse_constant=_refuse_constant, parse_float=read_float, **hooks)
    except RecursionError as deep:
        raise BadRequest(400, "malformed_json", _TOO_DEEP) from deep
    except (json.JSONDecodeError, UnicodeDecodeError) as broken:
        raise BadRequest(400, "malformed_json", f"The body is not JSON: {broken}") from broken
    except ValueError as long:  # an integer with more digits than Python reads
        raise BadRequest(422, "validation_failed", "A number in the body has too many digits.") from long
    if infinite or not _surely_plain(body):
        refuse_unstorable(parsed)
    return parsed


def _surely_plain(body: bytes) -> bool:
    """True if no text in it can be what `refuse_unstorable` refuses: seen from the bytes, in a fraction of the time.

    Not so with a backslash, which may escape a character; with the first byte of a surrogate; and with a zero byte, which other
    encodings than UTF-8 are full of. What is left of its brackets outside of texts must close within a few levels.
    """
    if b"\\" in body or b"\xed" in body or b"\x00" in body:
        return False
    # Two quotes side by side enclose nothing, or lie between two texts: without them the same brackets are outside of texts.
    kept = body.translate(None, _NEITHER_QUOTES_NOR_BRACKETS).replace(b'""', b"")
    brackets = _outside_of_texts(kept)
    for _ in range(_FLAT):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


def _outside_of_texts(kept: bytes) -> bytes:
    """What does not stand between two quotes. Bit by bit: all that lies between them at once takes fifteen times its size."""
    outside, in_text = bytearray(), 0
    for start in range(0, len(kept), _SPLIT_AT_ONCE):
        parts = kept[start : start + _SPLIT_AT_ONCE].split(b'"')
        outside += b"".join(parts[in_text::2])
        in_text = (in_text + len(parts) - 1) % 2
    return bytes(outside)


def _refuse_constant(name: str) -> NoReturn:
    raise BadRequest(422, "validation_failed", f"Numbers must be finite, not {name}.", [{"pointer": "", "detail": name}])


def refuse_unstorable(parsed: object) -> None:
    """Refuse infinite numbers (1e400), U+0000 and unpaired surrogates anywhere, object names included, and deep nesting.

    It goes down and up again and holds nothing but the way to where it is: a pointer is put into words for the offender only.
    """
    way: list[str | int] = []
    levels: list[Iterator[tuple[str | int, Any]]] = [iter([(0, parsed)])]
    while levels:
        for step, value in levels[-1]:
            objection = _objection_to_text(step) if type(step) is str else None
            if objection:
                _refuse(way[1:], objection)
            kind = type(value)
            if kind is str or kind is float:
                objection = _objection_to_text(value) if kind is str else _objection_to_number(value)
                if objection:
                    _refuse([*way, step][1:], objection)
            elif value and (kind is list or kind is dict):
                way.append(step)
                levels.append(iter(value.items() if kind is dict else enumerate(value)))
                break
        else:
            levels.pop()
            del way[-1:]
        if len(levels) > DEEPEST_JSON + 1:
            raise BadRequest(400, "malformed_json", _TOO_DEEP)


def _objection_to_text(text: str) -> str | None:
    if "\x00" in text:
        return "Text must not hold U+0000."
    if not text.isascii():
        try:
            text.encode()  # far quicker than looking at each character
        except UnicodeEncodeError:
            return "Text must not hold unpaired surrogates."
    return None


def _objection_to_number(number: float) -> str | None:
    return None if math.isfinite(number) else "Numbers must be finite."


def _refuse(way: Sequence[str | int], detail: str) -> NoReturn:
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in way)
    raise BadRequest(422, "validation_failed", detail, [{"pointer": pointer, "detail": detail}])


def fingerprint(body: bytes) -> str:
    """The same for equal JSON, whatever its spacing, the order of its names, and whether it says 1 or 1.0."""
    read = json.loads(body, parse_float=_whole_as_integer)
    return hashlib.sha256(json.dumps(read, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _whole_as_integer(digits: str) -> int | float:
    number = float(digits)
    return int(number) if number.is_integer() else number
