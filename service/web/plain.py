"""Plain asks and tells, recognised from the bytes of their requests.

This is no parser of HTTP and need not be one: it knows the one form that product backends send thousands of times a second, and
says "none of mine" to everything else, which then takes uvicorn's way through its own parser. What it does recognise, that parser
would read alike: every line is whole and plain, no header comes twice, and the body is as long as was said.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from time import perf_counter
from typing import Annotated, Any, Literal

import msgspec

from service.application.asks import Answer, Ask
from service.application.tells import Reward, Tell, Told
from service.web.views import answer_view, assignment_view, encode

_LINE = re.compile(
    rb"POST /v1/experiments/([a-z0-9][a-z0-9._-]{0,63})/assignments(?:/(asg_[0-9a-f]{27})/reward)? HTTP/1\.1(?=\r\n)"
)
_HEADER = re.compile(rb"\r\n([A-Za-z0-9-]+): ?((?:[!-~](?:[ -~]*[!-~])?)?)(?=\r\n)")
# As FastAPI spells them: both ways count under one name.
_ASK_ROUTE = "/v1/experiments/{key}/assignments"
_TELL_ROUTE = "/v1/experiments/{key}/assignments/{id}/reward"
_LONGEST_KEY = 255
# Of the body's length.
_MOST_DIGITS = 4
# A browser's request takes the long way, where its origin is looked at; so does anything about the connection or the body's form.
_UNUSUAL = {b"origin", b"sec-fetch-site", b"transfer-encoding", b"expect", b"content-encoding", b"upgrade", b"proxy-connection"}


class _AskBody(msgspec.Struct, forbid_unknown_fields=True):
    unit: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None


class _TellBody(msgspec.Struct, forbid_unknown_fields=True):
    reward: Reward


_read_ask = msgspec.json.Decoder(_AskBody).decode
_read_tell = msgspec.json.Decoder(_TellBody).decode


class PlainRequest:
    """A plain ask or tell. To uvicorn's protocol it looks like a request that it handed to an application."""

    __slots__ = (
        "_content", "_content_of", "answer", "began", "command", "disconnected", "keep_alive", "key", "name", "response_complete",
        "route",
    )  # fmt: skip

    message_event = asyncio.Event()
    """Nobody waits for more of it."""
    answer: Callable[[PlainRequest, Any, Exception | None], None]
    """What to do with the result, or with the failure."""

    name: bytes
    """The caller's, if it gave one; another is made up when one is needed."""

    def __init__(self, key: str, command: Ask | Tell, name: bytes, route: str) -> None:
        self.key, self.command, self.name, self.route = key, command, name, route
        self.began = perf_counter()
        self.keep_alive = True
        self.response_complete = self.disconnected = False
        self._content = b""
        self._content_of: Told | Answer | None = None

    def prepare(self, result: Any) -> None:  # noqa: ANN401 - what its command gives, or a refusal
        """Put the answer into words while it is written; it may still come to nothing."""
        if isinstance(result, Told | Answer):
            self._content, self._content_of = _content(result), result

    def content(self, result: Told | Answer) -> bytes:
        """The answer in words."""
        return self._content if self._content_of is result else _content(result)

    @property
    def path(self) -> str:
        """As far as it tells experiments apart."""
        return self.route.replace("{key}", self.key)

    def set_result(self, result: Any) -> None:  # noqa: ANN401 - what its command gives
        """The writer is through with it."""
        self.answer(self, result, None)

    def set_exception(self, failure: Exception) -> None:
        """Likewise."""
        self.answer(self, None, failure)


def read(data: bytes) -> PlainRequest | Literal["begun"] | None:
    """The request, if that is what the data is and nothing else; or it has begun, and some of its body is missing."""
    line, end = _LINE.match(data), data.find(b"\r\n\r\n")
    if line is None or end < 0:
        return None
    start = line.end()
    headers = {name.lower(): value for name, value in _HEADER.findall(data, start, end + 2)}
    length = headers.get(b"content-length", b"0")
    if (
        len(headers) != data.count(b"\r\n", start, end)  # a line is not plain, or comes twice
        or not _UNUSUAL.isdisjoint(headers)
        or headers.get(b"connection", b"keep-alive") != b"keep-alive"
        or not (length.isdigit() and len(length) <= _MOST_DIGITS)
    ):
        return None
    body = data[end + 4 :]
    missing = int(length) - len(body)
    if missing:
        return "begun" if missing > 0 else None
    key, assignment = line.groups()
    command = _command(assignment, headers, body)
    if command is None:
        return None
    route = _ASK_ROUTE if assignment is None else _TELL_ROUTE
    return PlainRequest(key.decode(), command, headers.get(b"x-request-id", b""), route)


def _content(result: Told | Answer) -> bytes:
    if isinstance(result, Told):
        return encode(assignment_view(result.experiment, result.arm, result.assignment))
    return encode(answer_view(result))


def _command(assignment: bytes | None, headers: dict[bytes, bytes], body: bytes) -> Ask | Tell | None:
    """What it asks for, unless the long way has something to say to it."""
    if body and (headers.get(b"content-type") != b"application/json" or b"\\u0000" in body):
        return None
    key = headers.get(b"idempotency-key")
    if key is not None and not 0 < len(key) <= _LONGEST_KEY:
        return None
    try:
        if assignment is not None:
            return Tell(assignment.decode(), "reward", _read_tell(body).reward)
        return Ask(_read_ask(body or b"{}").unit, None if key is None else key.decode())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
