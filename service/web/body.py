"""Reading a request's body: its size, its type, its JSON, and the values that no field may hold.

FastAPI would take NaN, 1e400, lone surrogates and any content type. Here a body is read once, checked whole, and only then
validated against its schema.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.errors import ExperimentNotFound
from service.web.problems import BadRequest

MOST_BYTES = 1024 * 1024
MOST_BYTES_OF_MANY = 16 * 1024 * 1024
# Deep enough for any value, and well below where Python's own recursion ends.
DEEPEST = 128
_NO_BRACKETS = bytes(set(range(256)).difference(b"{}[]"))
_FLAT = 4
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TOO_DEEP = f"The JSON is nested deeper than {DEEPEST} levels."
_LARGE = {
    "/v1/experiments",
    "/v1/experiments/{key}/assignments/batch",
    "/v1/experiments/{key}/rewards",
    "/v1/experiments/{key}/observations",
}


class StrictRoute(APIRoute):
    """A route whose path, query and body were checked whole before its handler sees them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's own handler."""
        handler = super().get_route_handler()
        limit = MOST_BYTES_OF_MANY if self.path in _LARGE else MOST_BYTES
        required = bool(self.body_field and self.body_field.field_info.is_required())

        async def strict(request: Request) -> Response:
            key = request.path_params.get("key")
            if key is not None and not _KEY.fullmatch(key):
                raise ExperimentNotFound(key)  # before it meets a database that could not even compare it
            for name, value in request.query_params.multi_items():
                _check_text(f"/query/{name}", value)
            if self.body_field is not None:
                body = await read_limited(request, limit)
                if body or required:
                    request._json = self.read(request, body)  # noqa: SLF001 - Starlette's own cache
                request._body = body  # noqa: SLF001 - likewise
            return await handler(request)

        return strict

    def read(self, request: Request, body: bytes) -> Any:  # noqa: ANN401 - any JSON
        """The body as Python objects, as far as FastAPI looks at them."""
        return parse_json(body, request.headers.get("content-type"))


async def read_limited(request: Request, limit: int) -> bytes:
    """The whole body, refused as soon as it is known to be too large."""
    announced = request.headers.get("content-length", "0")
    chunks, size = [], int(announced) if announced.isdigit() else 0
    if size <= limit:
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                break
            chunks.append(chunk)
    if size > limit:
        raise BadRequest(413, "body_too_large", f"The body is larger than {limit // 1024:,} KiB.")
    return b"".join(chunks)


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
        parsed = json.loads(body, parse_constant=_refuse_constant, parse_float=read_float)
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
    brackets = b"".join(body.split(b'"')[::2]).translate(None, _NO_BRACKETS)
    for _ in range(_FLAT):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


def _refuse_constant(name: str) -> NoReturn:
    raise BadRequest(422, "validation_failed", f"Numbers must be finite, not {name}.", [{"pointer": "", "detail": name}])


def refuse_unstorable(parsed: object) -> None:
    """Refuse infinite numbers (1e400), U+0000 and unpaired surrogates anywhere, object names included, and deep nesting."""
    waiting: list[tuple[str, object, int]] = [("", parsed, 0)]
    while waiting:
        pointer, value, depth = waiting.pop()
        if depth > DEEPEST:
            raise BadRequest(400, "malformed_json", _TOO_DEEP)
        if isinstance(value, float) and not math.isfinite(value):
            _refuse(pointer, "Numbers must be finite.")
        elif isinstance(value, str):
            _check_text(pointer, value)
        elif isinstance(value, list):
            waiting.extend((f"{pointer}/{index}", item, depth + 1) for index, item in enumerate(value))
        elif isinstance(value, dict):
            for name, item in value.items():
                _check_text(pointer, name)
                waiting.append((f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}", item, depth + 1))


def _check_text(pointer: str, text: str) -> None:
    if "\x00" in text:
        _refuse(pointer, "Text must not hold U+0000.")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        _refuse(pointer, "Text must not hold unpaired surrogates.")


def _refuse(pointer: str, detail: str) -> NoReturn:
    raise BadRequest(422, "validation_failed", detail, [{"pointer": pointer, "detail": detail}])
