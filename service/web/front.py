"""The hot routes, ask and tell, without the framework in between.

A request in its plain form (JSON, one small body, the fields it should have) is read by msgspec, served by the same use case as
FastAPI's handler, and answered at once. Anything else is passed on untouched, so every refusal is worded in one place only.
"""

from __future__ import annotations

import re
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from service.application.asks import Ask, as_first_given
from service.application.tells import Tell
from service.errors import BestArmError
from service.web.metrics import count_request
from service.web.problems import problem_for, problem_of_ours
from service.web.request_id import name_request
from service.web.views import answer_view, assignment_view, encode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from service.application.context import Context

_PATH = re.compile(r"/v1/experiments/([a-z0-9][a-z0-9._-]{0,63})/assignments(?:/(asg_[0-9a-f]{27})/reward)?")
# As FastAPI spells them: both ways count under one name.
_ASK_ROUTE = "/v1/experiments/{key}/assignments"
_TELL_ROUTE = "/v1/experiments/{key}/assignments/{id}/reward"
_JSON = (b"content-type", b"application/json")
_PLAIN_KEY = re.compile(rb"[ -~]{1,255}")
_MOST_BYTES = 4096
# A browser's request takes the long way, where its origin is looked at; so does anything with a body we cannot see whole.
_UNUSUAL = {b"origin", b"sec-fetch-site", b"transfer-encoding", b"expect", b"content-encoding"}


class _Ask(msgspec.Struct, forbid_unknown_fields=True):
    unit: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None


class _Tell(msgspec.Struct, forbid_unknown_fields=True):
    reward: Annotated[float, msgspec.Meta(ge=-1e100, le=1e100)]


_read_ask = msgspec.json.Decoder(_Ask).decode
_read_tell = msgspec.json.Decoder(_Tell).decode


class HotRoutes:
    """ASGI: serves plain asks and tells, passes everything else on."""

    def __init__(self, app: ASGIApp, state: Any) -> None:  # noqa: ANN401 - Starlette's State
        self.app = app
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or pass on."""
        matched = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        headers = _plain_headers(scope) if matched and not scope["query_string"] else None
        if matched is None or headers is None:
            await self.app(scope, receive, send)
            return
        message = await receive()
        body = message.get("body", b"")
        if message["type"] != "http.request" or message.get("more_body") or len(body) > _MOST_BYTES:
            await self.app(scope, _replaying(message, receive), send)
            return
        began = perf_counter()
        key, assignment = matched.groups()
        try:
            asked = _read_ask(body or b"{}") if assignment is None else _read_tell(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            asked = None
        if asked is None or (body and headers.get(b"content-type") != b"application/json") or b"\\u0000" in body:
            await self.app(scope, _replaying(message, receive), send)
            return
        name = name_request(headers.get(b"x-request-id", b""))
        context: Context = self.state.context
        problem, answered = None, [_JSON, (b"x-request-id", name)]
        try:
            if isinstance(asked, _Ask):
                route, given = _ASK_ROUTE, headers.get(b"idempotency-key")
                answer = await context.writer.enqueue(key, Ask(asked.unit, None if given is None else given.decode()))
                if answer.replayed:
                    answer = await as_first_given(context, answer)
                    answered.append((b"idempotency-replayed", b"true"))
                status, content = 201 if answer.created else 200, answer_view(answer)
            else:
                route = _TELL_ROUTE
                told = await context.writer.enqueue(key, Tell(assignment, "reward", asked.reward))
                status, content = 200, assignment_view(told.experiment, told.arm, told.assignment)
        except BestArmError as refused:
            problem = problem_for(refused, {"x-request-id": name.decode()})
        except Exception as fault:  # noqa: BLE001 - whatever it is, the caller gets a problem and the log the rest
            problem = problem_of_ours(scope["path"], fault, {"x-request-id": name.decode()})
        if problem is not None:
            count_request("POST", route, problem.status_code, perf_counter() - began)
            await problem(scope, receive, send)
            return
        count_request("POST", route, status, perf_counter() - began)
        written = encode(content)
        answered.append((b"content-length", b"%d" % len(written)))
        await send({"type": "http.response.start", "status": status, "headers": answered})
        await send({"type": "http.response.body", "body": written})


def _plain_headers(scope: Scope) -> dict[bytes, bytes] | None:
    """The headers, if there is nothing unusual about them."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if not _UNUSUAL.isdisjoint(headers):
        return None
    key = headers.get(b"idempotency-key")
    if key is not None and (not _PLAIN_KEY.fullmatch(key) or len(headers) != len(scope["headers"])):
        return None
    return headers


def _replaying(first: Message, receive: Receive) -> Receive:
    """The rest of a request whose first message was taken already."""
    waiting: list[Message] = [first]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
