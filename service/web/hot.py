"""The hot routes, ask and tell, without the framework, without ASGI and without a task of their own.

A plain request (service/web/plain.py) is queued for the same use case as FastAPI's handler as soon as it is there, and answered
when its group is durable, all in callbacks of the connection. Anything else takes uvicorn's own way to FastAPI, so every refusal
of a request is worded in one place only.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from time import perf_counter
from typing import TYPE_CHECKING

from service.application.asks import Answer, as_first_given
from service.application.tells import Told
from service.errors import BestArmError
from service.web import plain
from service.web.metrics import count_request
from service.web.one_write import OneWriteProtocol
from service.web.patience import Patience
from service.web.plain import PlainRequest
from service.web.problems import problem_for, problem_of_ours
from service.web.request_id import name_of, name_request

if TYPE_CHECKING:
    from service.application.context import Context

_JSON = b"content-type: application/json\r\n"
_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


class HotProtocol(OneWriteProtocol):
    """uvicorn's HTTP, with a short way for asks and tells."""

    _begun: bytes = b""
    """A plain request whose body is not there yet. Some clients send it by itself."""
    _in_parser = False
    """The parser has seen the beginning of a request and not its end."""
    _patience: Patience | None = None
    _unanswered = 0
    """Plain requests of all connections."""
    _common: list[tuple[bytes, bytes]] | None = None
    _common_lines = b""
    """The headers that every answer has, and how they look. Uvicorn makes them anew every second, because of the date."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn itself
        """Look up once what every request needs."""
        super().connection_made(transport)
        context: Context = self.app.state.context
        self._enqueue = context.writer.enqueue

    def data_received(self, data: bytes) -> None:
        """Queue it if it is a plain request; let uvicorn have it if it is not."""
        if self._in_parser or (self.cycle is not None and not self.cycle.response_complete):
            super().data_received(data)
            return
        begun, self._begun = self._begun, b""
        data = begun + data
        request = plain.read(data)
        if request == "begun" and not begun:
            self._unset_keepalive_if_required()
            self._begun = data
        elif isinstance(request, PlainRequest) and self._is_queued(request):
            if self._patience is not None:
                self._patience.until = None
        else:
            super().data_received(data)

    def on_message_begin(self) -> None:
        """Note it."""
        self._in_parser = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Note it."""
        self._in_parser = False
        super().on_message_complete()

    def shutdown(self) -> None:
        """What has begun may still be finished."""
        if self._begun:
            begun, self._begun = self._begun, b""
            super().data_received(begun)
        super().shutdown()

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
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self._patience is None:
            self._patience = Patience(self.loop, self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self.timeout_keep_alive_task = self._patience.begin()  # type: ignore[assignment] # all uvicorn does is cancel it

    def _is_queued(self, request: PlainRequest) -> bool:
        request.answer = self._when_through
        try:
            self._enqueue(request.key, request.command, request, prepare=request.prepare)
        except BestArmError:
            return False  # the queue is full: the long way will say so
        HotProtocol._unanswered += 1
        self.cycle = request  # type: ignore[assignment] # as far as uvicorn looks at it
        return True

    def _when_through(self, request: PlainRequest, result: Told | Answer | None, failure: Exception | None) -> None:
        """The group is durable. Where others wait, the next one goes on its way before anybody is answered."""
        HotProtocol._unanswered -= 1
        if HotProtocol._unanswered:
            self.loop.call_soon(self._answer, request, result, failure)
        else:
            self._answer(request, result, failure)

    def _answer(self, request: PlainRequest, result: Told | Answer | None, failure: Exception | None) -> None:
        """Answer, or let a task do what takes longer."""
        try:
            if result is not None and not self.flow.write_paused and not result.replayed:
                self._write_result(request, result)
                return
        except Exception as trouble:  # noqa: BLE001 - nobody is left waiting: it becomes a problem below
            result, failure = None, trouble
        task = self.loop.create_task(self._answer_at_leisure(request, result, failure))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _answer_at_leisure(self, request: PlainRequest, result: Told | Answer | None, failure: Exception | None) -> None:
        """A repeated answer, whose first form must be looked up, an answer to a client that reads slowly, or a problem."""
        request.name = name_request(request.name)
        try:
            if result is not None:
                if isinstance(result, Answer) and result.replayed:
                    result = await as_first_given(self.app.state.context, result)
                await self.flow.drain()
                self._write_result(request, result)
                return
        except Exception as trouble:  # noqa: BLE001 - whatever it is, the caller gets a problem and the log the rest
            failure = trouble
        ours = isinstance(failure, BestArmError)
        problem = problem_for(failure) if ours else problem_of_ours(request.path, failure)  # type: ignore[arg-type]
        await self.flow.drain()
        headers = b"".join(b"%b: %b\r\n" % header for header in problem.raw_headers if header[0] != b"content-length")
        self._write(request, problem.status_code, headers, bytes(problem.body))

    def _write_result(self, request: PlainRequest, result: Told | Answer) -> None:
        created = isinstance(result, Answer) and result.created
        headers = b"idempotency-replayed: true\r\n" + _JSON if result.replayed else _JSON
        self._write(request, 201 if created else 200, headers, request.content(result))

    def _write(self, request: PlainRequest, status: int, headers: bytes, content: bytes) -> None:
        """The whole answer at once, and the connection is free for the next request."""
        if request.response_complete:
            return  # something went wrong after it had been sent
        request.response_complete = True
        request.name = name_of(request.name)
        if HotProtocol._common is not self.server_state.default_headers:
            HotProtocol._common = self.server_state.default_headers
            HotProtocol._common_lines = b"".join(b"%b: %b\r\n" % header for header in HotProtocol._common)
        if not request.disconnected and not self.transport.is_closing():
            self.write_whole(
                b"HTTP/1.1 %d %b\r\n%b%bx-request-id: %b\r\n%bcontent-length: %d\r\n\r\n%b"
                % (
                    status,
                    _PHRASES[status],
                    HotProtocol._common_lines,
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
        count_request("POST", request.route, status, perf_counter() - request.began)
