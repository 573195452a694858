"""The hot routes, ask and tell, without the framework, without ASGI and without a task of their own.

A request in its plain form (JSON, one small body, the fields it should have) is read by msgspec as soon as its body is there,
served by the same use case as FastAPI's handler, and answered when its group is durable, all in callbacks of the connection.
Anything else takes uvicorn's own way to FastAPI, so every refusal is worded in one place only.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from service.application.asks import Answer, Ask, as_first_given
from service.application.tells import Reward, Tell, Told
from service.errors import BestArmError
from service.web.metrics import count_request
from service.web.one_write import OneWriteProtocol
from service.web.patience import Patience
from service.web.problems import problem_for, problem_of_ours
from service.web.request_id import name_request
from service.web.views import answer_view, assignment_view, encode

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from service.application.context import Context

_PATH = re.compile(r"/v1/experiments/([a-z0-9][a-z0-9._-]{0,63})/assignments(?:/(asg_[0-9a-f]{27})/reward)?")
# As FastAPI spells them: both ways count under one name.
_ASK_ROUTE = "/v1/experiments/{key}/assignments"
_TELL_ROUTE = "/v1/experiments/{key}/assignments/{id}/reward"
_PLAIN_KEY = re.compile(rb"[ -~]{1,255}")
_MOST_BYTES = 4096
# A browser's request takes the long way, where its origin is looked at; so does anything with a body we cannot see whole.
_UNUSUAL = {b"origin", b"sec-fetch-site", b"transfer-encoding", b"expect", b"content-encoding"}
_STATUS = {200: b"HTTP/1.1 200 OK\r\n", 201: b"HTTP/1.1 201 Created\r\n"}


class _AskBody(msgspec.Struct, forbid_unknown_fields=True):
    unit: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None


class _TellBody(msgspec.Struct, forbid_unknown_fields=True):
    reward: Reward


_read_ask = msgspec.json.Decoder(_AskBody).decode
_read_tell = msgspec.json.Decoder(_TellBody).decode


class _Request(msgspec.Struct):
    """A plain ask or tell."""

    key: str
    command: Ask | Tell
    name: bytes
    route: str
    began: float


class HotProtocol(OneWriteProtocol):
    """uvicorn's HTTP, with a short way for asks and tells."""

    _candidate: RequestResponseCycle | None = None
    """A request to a hot route whose body has not arrived yet."""
    _patience: Patience | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is left to be patient with."""
        if self._patience is not None:
            self._patience.end()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """As uvicorn does it, but with one timer for the connection and not one for each answer."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self._patience is None:
            self._patience = Patience(self.loop, self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self.timeout_keep_alive_task = self._patience.begin()  # type: ignore[assignment] # all uvicorn does is cancel it

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - ASGI
        """Let a request to a hot route wait for its body; start any other."""
        if app is self.app and self._is_candidate(cycle):
            self._candidate = cycle
            if not cycle.more_body:
                self._serve_candidate()
        else:
            super()._start_asgi_task(cycle, app)

    def _is_candidate(self, cycle: RequestResponseCycle) -> bool:
        scope = cycle.scope
        return scope["method"] == "POST" and scope["path"].startswith("/v1/experiments/") and not cycle.waiting_for_100_continue

    def on_body(self, body: bytes) -> None:
        """A large body takes the long way, which reads it in pieces."""
        super().on_body(body)
        candidate = self._candidate
        if candidate is not None and len(candidate.body) > _MOST_BYTES:
            self._candidate = None
            super()._start_asgi_task(candidate, self.app)

    def on_message_complete(self) -> None:
        """The request is there, whole."""
        super().on_message_complete()
        if self._candidate is self.cycle and self._candidate is not None:
            self._serve_candidate()

    def _serve_candidate(self) -> None:
        cycle, self._candidate = self._candidate, None
        if cycle is None:
            return
        context: Context = self.app.state.context
        request = _read(cycle)
        try:
            answer = None if request is None else context.writer.enqueue(request.key, request.command)
        except BestArmError:
            answer = None  # the queue is full: the long way will say so
        if request is None or answer is None:
            super()._start_asgi_task(cycle, self.app)
        else:
            answer.add_done_callback(partial(self._answer, cycle, request))

    def _answer(self, cycle: RequestResponseCycle, request: _Request, done: asyncio.Future[Any]) -> None:
        """The group is through: answer, or let a task do what takes longer."""
        failure = done.exception()
        result = None if failure else done.result()
        try:
            if isinstance(result, Told | Answer) and not self.flow.write_paused and not _is_replayed(result):
                self._write(cycle, request, result)
                return
        except Exception as trouble:  # noqa: BLE001 - nobody is left waiting: it becomes a problem below
            result, failure = None, trouble
        task = self.loop.create_task(self._answer_at_leisure(cycle, request, result, failure))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _answer_at_leisure(
        self, cycle: RequestResponseCycle, request: _Request, result: Told | Answer | None, failure: BaseException | None
    ) -> None:
        """A repeated answer, whose first form must be looked up, an answer to a client that reads slowly, or a problem."""
        name_request(request.name)
        try:
            if result is not None:
                if isinstance(result, Answer) and result.replayed:
                    result = await as_first_given(self.app.state.context, result)
                await self.flow.drain()
                self._write(cycle, request, result)
                return
        except Exception as trouble:  # noqa: BLE001 - whatever it is, the caller gets a problem and the log the rest
            failure = trouble
        headers = {"x-request-id": request.name.decode()}
        if isinstance(failure, BestArmError):
            problem = problem_for(failure, headers)
        else:
            problem = problem_of_ours(cycle.scope["path"], failure, headers)  # type: ignore[arg-type]
        count_request("POST", request.route, problem.status_code, perf_counter() - request.began)
        await problem(cycle.scope, cycle.receive, cycle.send)  # type: ignore[arg-type]

    def _write(self, cycle: RequestResponseCycle, request: _Request, result: Told | Answer) -> None:
        """The whole answer at once, and the connection is free for the next request."""
        if isinstance(result, Told):
            status, content = 200, encode(assignment_view(result.experiment, result.arm, result.assignment))
        else:
            status, content = 201 if result.created else 200, encode(answer_view(result))
        if cycle.disconnected or self.transport.is_closing():
            count_request("POST", request.route, status, perf_counter() - request.began)
            return
        extra = b"idempotency-replayed: true\r\n" if _is_replayed(result) else b""
        head = [_STATUS[status]]
        for name, value in cycle.default_headers:
            head += [name, b": ", value, b"\r\n"]
        closing = b"" if cycle.keep_alive else b"connection: close\r\n"
        head.append(
            b"content-type: application/json\r\nx-request-id: %b\r\n%b%bcontent-length: %d\r\n\r\n"
            % (request.name, extra, closing, len(content))
        )
        head.append(content)
        self.write_whole(b"".join(head))
        count_request("POST", request.route, status, perf_counter() - request.began)
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()


def _is_replayed(result: Told | Answer) -> bool:
    return isinstance(result, Answer) and result.replayed


def _read(cycle: RequestResponseCycle) -> _Request | None:
    """The ask or tell, or None if there is anything unusual about it."""
    scope, body = cycle.scope, cycle.body
    matched = _PATH.fullmatch(scope["path"])
    every = list(scope["headers"])
    headers = dict(every)
    if matched is None or scope["query_string"] or not _UNUSUAL.isdisjoint(headers) or len(body) > _MOST_BYTES:
        return None
    if body and (headers.get(b"content-type") != b"application/json" or b"\\u0000" in body):
        return None
    key, assignment = matched.groups()
    given = headers.get(b"idempotency-key")
    # A key that was sent twice, or is not plain text, is for the long way to refuse.
    if given is not None and (not _PLAIN_KEY.fullmatch(given) or len(headers) != len(every)):
        return None
    command: Ask | Tell
    try:
        if assignment is None:
            command = Ask(_read_ask(body or b"{}").unit, None if given is None else given.decode())
        else:
            command = Tell(assignment, "reward", _read_tell(body).reward)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    name = name_request(headers.get(b"x-request-id", b""))
    return _Request(key, command, name, _ASK_ROUTE if assignment is None else _TELL_ROUTE, perf_counter())
