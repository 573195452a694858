"""Asks and tells without the framework, without ASGI and without a task of their own.

A request that the recogniser knows is queued for the same command as FastAPI's handler would queue, as soon as it is there, and
answered when its group is durable, all in callbacks of the connection. Anything else takes uvicorn's own way to FastAPI, so
every refusal of a request is worded in one place only.

The middlewares are passed by, and what they do is done here or need not be (docs/decisions/0006): the request's id and its
timing are put on the answer, problems are worded by the same functions, nothing is read conditionally, and a request that names
an origin, a host that was not accepted before, or a key that is not known is never recognised.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from time import perf_counter
from typing import TYPE_CHECKING, Any

from service.application.commands.ask import AskAnswer, as_first_given
from service.application.commands.tell import TellAnswer
from service.errors import BestArmError, Overloaded, Unauthorized
from service.web.fast_path.connection import GuardedProtocol
from service.web.fast_path.recogniser import FastRequest, LastHead, Stranger, recognise
from service.web.problems import MEDIA_TYPE, STATUS, content_of, problem_for, problem_of_ours
from service.web.request_context import name_of, name_request
from service.web.request_metrics import count_auth_failure, count_problem, count_request

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from fastapi import Response

    from service.application.context import Context
    from service.application.live.known_callers import KnownCallers
    from service.web.access.rate_limits import RateLimits
    from service.web.access_log import AccessLog

_JSON = b"content-type: application/json\r\n"
_REFUSED_STATUS, _REFUSED_CODE = STATUS[Unauthorized]
_REFUSED_HEADERS = b"www-authenticate: Bearer\r\ncontent-type: %b\r\n" % MEDIA_TYPE.encode()
_OVERLOADED_STATUS, _OVERLOADED_CODE = STATUS[Overloaded]
_OVERLOADED_HEADERS = b"retry-after: 1\r\ncontent-type: %b\r\n" % MEDIA_TYPE.encode()
_PLACE_OF_ID = b"(id)"
_REFUSED = content_of(_REFUSED_STATUS, _REFUSED_CODE, str(Unauthorized("unknown")), _PLACE_OF_ID.decode())
_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


@cache  # one sentence
def _overloaded(detail: str) -> bytes:
    return content_of(_OVERLOADED_STATUS, _OVERLOADED_CODE, detail, _PLACE_OF_ID.decode())


@dataclass(slots=True)
class FastPathState:
    """What all connections of a process share. Kept in the application's state."""

    hosts: set[bytes]
    """Values of `Host` that were accepted; `AllowedHosts` keeps it."""
    callers: KnownCallers
    rates: RateLimits | None = None
    """None where keys that are not public may send any number of requests: others do not come this way."""
    access_log: AccessLog | None = None
    unanswered: int = 0
    """Recognised requests that wait for their group."""
    default_headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    default_lines: bytes = b""
    """The headers that every answer has, and how they look. uvicorn makes them anew every second, because of the date."""

    def lines_of(self, default_headers: list[tuple[bytes, bytes]]) -> bytes:
        """These headers as they are sent."""
        if default_headers is not self.default_headers:
            self.default_headers = default_headers
            self.default_lines = b"".join(b"%b: %b\r\n" % header for header in default_headers)
        return self.default_lines


class FastPathProtocol(GuardedProtocol):
    """uvicorn's HTTP, with a short way for asks and tells."""

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - what uvicorn gives its protocol
        """A connection that has not been made yet."""
        super().__init__(*args, **named)
        self._begun = b""
        """A recognised head whose body is not there yet. Some clients send it by itself."""
        self._last_head = LastHead()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn itself
        """Look up once what every request needs."""
        super().connection_made(transport)
        context: Context = self.app.state.context
        self._enqueue = context.writer.enqueue
        self._shared: FastPathState = self.app.state.fast_path

    def data_received(self, data: bytes) -> None:
        """Queue what the recogniser knows; let uvicorn have the rest."""
        if self._in_parser or (self.cycle is not None and not self.cycle.response_complete):
            super().data_received(data)
            return
        begun, self._begun = self._begun, b""
        data = begun + data
        request = recognise(data, self._shared.hosts, self._shared.callers.known, self._last_head)
        if request == "begun" and not begun:
            self.deadline = self.loop.time() + self._limits.body_seconds
            self._begun = data
        elif isinstance(request, FastRequest) and self._is_queued(request):
            self.deadline = math.inf
        elif isinstance(request, Stranger):
            self._hear_stranger(data, request)
        else:
            super().data_received(data)

    def _hear_stranger(self, data: bytes, stranger: Stranger) -> None:
        """Refuse a wrong key, which must cost little, here; one that may be new waits until the keys were looked at again."""
        self.deadline = math.inf
        stranger.keep_alive = not self._is_last_request
        self.cycle = stranger  # type: ignore[assignment] # as far as uvicorn looks at it
        refusal = self._shared.callers.refusal_of(stranger.secret, is_new=True)
        if refusal is None:
            self.flow.pause_reading()
            self._shared.callers.look_again_before(lambda: self._stranger_looked_at(data, stranger))
        else:
            self._refuse_stranger(stranger, refusal)

    def _stranger_looked_at(self, data: bytes, stranger: Stranger) -> None:
        """Refuse; whoever is known by now, or cannot be told, takes the long way."""
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        refusal = self._shared.callers.refusal_of(stranger.secret, is_new=False)
        if refusal is None:
            self.cycle = None  # type: ignore[assignment] # as before the first request
            super().data_received(data)
            if not stranger.keep_alive:
                self.shutdown()  # asked for meanwhile
        else:
            self._refuse_stranger(stranger, refusal)

    def _refuse_stranger(self, stranger: Stranger, refusal: BestArmError) -> None:
        """As the long way words it, but for the work: a flood of these is nobody's but their sender's."""
        stranger.name = name_of(stranger.name)
        count_problem(_REFUSED_CODE)
        count_auth_failure(refusal.reason or "unknown")
        answer = _REFUSED.replace(_PLACE_OF_ID, stranger.name)
        if self.flow.write_paused:
            self._begin(self._refuse_when_read(stranger, answer))
        else:
            self._write(stranger, _REFUSED_STATUS, _REFUSED_HEADERS, answer)

    async def _refuse_when_read(self, stranger: Stranger, answer: bytes) -> None:
        await self.flow.drain()
        self._write(stranger, _REFUSED_STATUS, _REFUSED_HEADERS, answer)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def has_begun(self) -> bool:
        """Is part of a request there?"""
        return bool(self._begun) or super().has_begun()

    def shutdown(self) -> None:
        """Let uvicorn finish a request whose head is there, then stop as it does."""
        if self._begun:
            begun, self._begun = self._begun, b""
            super().data_received(begun)
        super().shutdown()

    def _is_queued(self, request: FastRequest) -> bool:
        request.answer = self._outcome_arrived
        if self._is_last_request:
            request.keep_alive = False
        rates = self._shared.rates
        if rates is not None and not rates.admits(request.caller):
            return False  # it has sent too many: the long way will say so
        try:
            self._enqueue(request.caller, request.key, request.command, request)
        except BestArmError:
            if rates is not None:
                rates.give_back(request.caller)
            return False  # the key is not for this: the long way will say so
        self._shared.unanswered += 1
        self.cycle = request  # type: ignore[assignment] # as far as uvicorn looks at it
        return True

    def _refuse_one_too_many(self, request: FastRequest, full: Overloaded) -> None:
        """In the words of the long way, which one who does not read gets when there is room for it.

        The long way itself takes ten times what the request does: nobody would be served for all the refusing.
        """
        if self.flow.write_paused:
            self._answer(request, None, full)
            return
        request.name = name_of(request.name)
        count_problem(_OVERLOADED_CODE)
        self._write(request, _OVERLOADED_STATUS, _OVERLOADED_HEADERS, _overloaded(str(full)).replace(_PLACE_OF_ID, request.name))

    def _outcome_arrived(self, request: FastRequest, result: TellAnswer | AskAnswer | None, failure: Exception | None) -> None:
        """Answer; where others wait, deferred to `_answer`, so that the next group goes on its way before anybody is answered."""
        self._shared.unanswered -= 1
        if isinstance(failure, Overloaded):
            self._refuse_one_too_many(request, failure)
        elif self._shared.unanswered:
            self.loop.call_soon(self._answer, request, result, failure)
        else:
            self._answer(request, result, failure)

    def _answer(self, request: FastRequest, result: TellAnswer | AskAnswer | None, failure: Exception | None) -> None:
        """Answer, or let a task do what takes longer: `_answer_slowly`."""
        try:
            if result is not None and not self.flow.write_paused and not result.replayed:
                self._write_result(request, result)
                return
        except Exception as trouble:  # noqa: BLE001 - nobody is left waiting: it becomes a problem below
            result, failure = None, trouble
        self._begin(self._answer_slowly(request, result, failure))

    async def _answer_slowly(
        self, request: FastRequest, result: TellAnswer | AskAnswer | None, failure: Exception | None
    ) -> None:
        """A repeated answer, whose first form must be looked up, an answer to a client that reads slowly, or a problem."""
        request.name = name_request(request.name)
        try:
            if result is not None:
                if isinstance(result, AskAnswer) and result.replayed:
                    result = await as_first_given(self.app.state.context, result)
                await self.flow.drain()
                self._write_result(request, result)
                return
        except Exception as trouble:  # noqa: BLE001 - whatever it is, the caller gets a problem and the log the rest
            failure = trouble
        ours = isinstance(failure, BestArmError)
        problem = problem_for(failure) if ours else problem_of_ours(request.path, failure)  # type: ignore[arg-type]
        await self.flow.drain()
        self._write_problem(request, problem)

    def _write_problem(self, request: FastRequest | Stranger, problem: Response) -> None:
        headers = b"".join(b"%b: %b\r\n" % header for header in problem.raw_headers if header[0] != b"content-length")
        self._write(request, problem.status_code, headers, bytes(problem.body))

    def _write_result(self, request: FastRequest, result: TellAnswer | AskAnswer) -> None:
        created = isinstance(result, AskAnswer) and result.created
        headers = b"idempotency-replayed: true\r\n" + _JSON if result.replayed else _JSON
        self._write(request, 201 if created else 200, headers, request.content(result))

    def _write(self, request: FastRequest | Stranger, status: int, headers: bytes, content: bytes) -> None:
        """Send the whole answer at once; the connection is free for the next request."""
        if request.response_complete:
            return  # something went wrong after it had been sent
        request.response_complete = True
        request.name = name_of(request.name)
        if not request.disconnected and not self.transport.is_closing():
            self.write_whole(
                b"HTTP/1.1 %d %b\r\n%b%bx-request-id: %b\r\n%bcontent-length: %d\r\n\r\n%b"
                % (
                    status,
                    _PHRASES[status],
                    self._shared.lines_of(self.server_state.default_headers),
                    headers,
                    request.name,
                    b"" if request.keep_alive else b"connection: close\r\n",
                    len(content),
                    content,
                )
            )
        if not request.keep_alive:
            self.transport.close()
        self.on_response_complete()
        seconds = perf_counter() - request.began
        count_request("POST", request.route, status, seconds, request.caller)
        if (log := self._shared.access_log) is not None:
            log.write(
                "POST",
                request.route,
                request.parameters,
                status,
                seconds=seconds,
                size=len(content),
                request_id=request.name.decode(),
                caller=request.caller,
            )
