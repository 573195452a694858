"""Asks and tells in their usual form, recognised from the bytes of their requests.

This is no parser of HTTP and need not be one: it knows the one form that product backends send thousands of times a second, and
says "none of mine" to everything else, which then takes uvicorn's way through its own parser. What it does recognise, that parser
would read alike: every line is whole and plain, no header comes twice, and the body is as long as was said.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Container
from time import perf_counter
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec

from service.application.commands.ask import Ask, AskAnswer
from service.application.commands.tell import Reward, Tell, TellAnswer
from service.domain.api_keys import digest_of
from service.domain.callers import Caller
from service.domain.limits import ASSIGNMENT_ID_PATTERN, KEY_PATTERN, LONGEST_IDEMPOTENCY_KEY, LONGEST_UNIT
from service.web.access.credentials import is_public, secret_in
from service.web.api.views import answer_view, assignment_view, encode

Known: TypeAlias = Callable[[bytes | None], Caller | None]
"""The caller with this digest of a key, or without a key, if it is known."""

_LINE = re.compile(
    rb"POST /v1/experiments/(%b)/assignments(?:/(%b)/reward)? HTTP/1\.1(?=\r\n)"
    % (KEY_PATTERN.encode(), ASSIGNMENT_ID_PATTERN.encode())
)
_HEADER = re.compile(rb"\r\n([A-Za-z0-9-]+): ?((?:[!-~](?:[ -~]*[!-~])?)?)(?=\r\n)")
# As FastAPI spells them: both ways count under one name.
_ASK_ROUTE = "/v1/experiments/{key}/assignments"
_TELL_ROUTE = "/v1/experiments/{key}/assignments/{id}/reward"
# A longer one may be too long, which the long way knows.
_LONGEST_HEAD = 8 * 1024
# Of the body's length: what is longer is nothing usual.
_MOST_LENGTH_DIGITS = 4
# A browser's request takes the long way, where its origin and its session are looked at; so does anything about the connection or
# the body's form.
_UNUSUAL = {
    b"origin", b"sec-fetch-site", b"cookie",
    b"transfer-encoding", b"expect", b"content-encoding", b"upgrade", b"proxy-connection",
}  # fmt: skip


class _AskBody(msgspec.Struct, forbid_unknown_fields=True):
    unit: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_UNIT)] | None = None


class _TellBody(msgspec.Struct, forbid_unknown_fields=True):
    reward: Reward


# Made once: a union that is written where it is needed is made anew with each request.
_ANSWERS = (TellAnswer, AskAnswer)
_read_ask = msgspec.json.Decoder(_AskBody).decode
_read_tell = msgspec.json.Decoder(_TellBody).decode


class LastHead:
    """What a connection has sent last: most send the same lines again, but for the path, and the same key with all of them.

    Equal lines need not be read again, nor an equal key hashed. A proxy may send another client's request next, so both are
    compared in a time that says nothing of them.
    """

    __slots__ = ("digest", "headers", "key", "lines")

    def __init__(self) -> None:
        self.lines = b""
        """As they came, without the first. Lines with an idempotency key are not kept: they do not come again."""
        self.headers: dict[bytes, bytes] = {}
        self.key: bytes | None = None
        """As it came, with its scheme."""
        self.digest = b""


class NobodyWaiting:
    """Stands where uvicorn has an event for who waits for more of a request: this one is whole. It keeps no state."""

    def set(self) -> None:
        """There is nobody to wake."""


class FastRequest:
    """A recognised ask or tell, and the recipient of its outcome.

    To uvicorn's protocol it looks like a request that it handed to an application.
    """

    __slots__ = (
        "_content", "_content_of", "answer", "began", "caller", "command", "disconnected", "keep_alive", "key", "name",
        "response_complete", "route",
    )  # fmt: skip

    message_event = NobodyWaiting()
    """uvicorn sets it when the client leaves."""
    has_disconnected = False
    """To the engine: what was recognised is decided, whether its client still waits or not (`disconnected` is uvicorn's)."""
    answer: Callable[[FastRequest, Any, Exception | None], None]
    """What the protocol does with the result, or with the failure."""

    name: bytes
    """The caller's X-Request-Id, if it gave one; another is made up when one is needed."""

    def __init__(self, caller: Caller, key: str, command: Ask | Tell, name: bytes, route: str) -> None:
        self.caller, self.key, self.command, self.name, self.route = caller, key, command, name, route
        self.began = perf_counter()
        self.keep_alive = True
        self.response_complete = self.disconnected = False
        self._content = b""
        self._content_of: TellAnswer | AskAnswer | None = None

    def prepare(self, result: Any) -> None:  # noqa: ANN401 - what its command gives, or a refusal
        """Put the answer into words while it is written; it may still come to nothing."""
        if isinstance(result, _ANSWERS):
            self._content, self._content_of = _content(result), result

    def content(self, result: TellAnswer | AskAnswer) -> bytes:
        """The answer in words."""
        return self._content if self._content_of is result else _content(result)

    @property
    def parameters(self) -> dict[str, str]:
        """What its path holds."""
        return {"key": self.key, "id": self.command.assignment_id if isinstance(self.command, Tell) else ""}

    @property
    def path(self) -> str:
        """As far as it tells experiments apart."""
        return self.route.replace("{key}", self.key)

    def set_result(self, result: Any) -> None:  # noqa: ANN401 - what its command gives
        """Hand the outcome to the connection."""
        self.answer(self, result, None)

    def set_exception(self, failure: Exception) -> None:
        """Hand the failure to the connection."""
        self.answer(self, None, failure)


class Stranger:
    """An ask or tell in its usual form, but for its key, which is not known. To uvicorn it looks like a request, too."""

    __slots__ = ("began", "disconnected", "keep_alive", "name", "response_complete", "route", "secret")

    message_event = NobodyWaiting()
    caller = None
    parameters: ClassVar[dict[str, str]] = {}

    def __init__(self, secret: bytes, name: bytes, route: str) -> None:
        self.secret, self.name, self.route = secret, name, route
        self.began = perf_counter()
        self.keep_alive = True
        self.response_complete = self.disconnected = False


def recognise(
    data: bytes, hosts: Container[bytes], known: Known, last: LastHead
) -> FastRequest | Stranger | Literal["begun"] | None:
    """The request of a caller that is known, to one of these hosts, if the data is nothing else; or some of it is missing yet."""
    line, end = _LINE.match(data), data.find(b"\r\n\r\n")
    if line is None or not 0 < end <= _LONGEST_HEAD:
        return None
    headers = _usual_headers(data[line.end() : end + 2], last)
    if headers is None or headers.get(b"host") not in hosts:
        return None
    body = data[end + 4 :]
    missing = int(headers.get(b"content-length", b"0")) - len(body)
    if missing:
        return "begun" if missing > 0 else None
    key, assignment = line.groups()
    route, name = _ASK_ROUTE if assignment is None else _TELL_ROUTE, headers.get(b"x-request-id", b"")
    caller = _caller(headers.get(b"authorization"), known, last)
    if not isinstance(caller, Caller):
        return None if caller is None else Stranger(caller, name, route)
    command = _command(assignment, headers, body)
    return None if command is None else FastRequest(caller, key.decode(), command, name, route)


def _usual_headers(lines: bytes, last: LastHead) -> dict[bytes, bytes] | None:
    """The headers of these lines, each of which ends and begins with a line break; None if there is anything unusual."""
    if len(lines) == len(last.lines) and hmac.compare_digest(lines, last.lines):
        return last.headers
    headers = {name.lower(): value for name, value in _HEADER.findall(lines)}
    length = headers.get(b"content-length", b"0")
    if (
        len(headers) != lines.count(b"\r\n") - 1  # a line is not plain, or comes twice
        or not _UNUSUAL.isdisjoint(headers)
        or headers.get(b"connection", b"keep-alive") != b"keep-alive"
        or not (length.isdigit() and len(length) <= _MOST_LENGTH_DIGITS)
    ):
        return None
    if b"idempotency-key" not in headers:
        last.lines, last.headers = lines, headers
    return headers


def _caller(authorization: bytes | None, known: Known, last: LastHead) -> Caller | bytes | None:
    """Who it is, or the secret that is not known; what pages send, whose origin is looked at, takes the long way."""
    if authorization is None:
        return known(None)
    if last.key is not None and hmac.compare_digest(authorization, last.key):
        caller = known(last.digest)
        if caller is not None:
            return caller
    secret = secret_in(authorization)
    if secret is None or is_public(secret):
        return None
    digest = digest_of(secret)
    caller = known(digest)
    if caller is None:
        return secret
    last.key, last.digest = authorization, digest
    return caller


def _content(result: TellAnswer | AskAnswer) -> bytes:
    if isinstance(result, TellAnswer):
        return encode(assignment_view(result.experiment, result.arm, result.assignment))
    return encode(answer_view(result))


def _command(assignment: bytes | None, headers: dict[bytes, bytes], body: bytes) -> Ask | Tell | None:
    """What it asks for, unless the long way has something to say to it."""
    if body and (headers.get(b"content-type") != b"application/json" or b"\\u0000" in body):
        return None
    key = headers.get(b"idempotency-key")
    if key is not None and not 0 < len(key) <= LONGEST_IDEMPOTENCY_KEY:
        return None
    try:
        if assignment is not None:
            return Tell(assignment.decode(), "reward", _read_tell(body).reward)
        return Ask(_read_ask(body or b"{}").unit, None if key is None else key.decode())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
