"""A connection that spends less on each answer, one write instead of two, and that no client can keep for ever.

uvicorn hands the head of an answer and its body to the socket one after the other, and each costs a system call, which on the
fast path is a tenth of all work. Here the head waits for its body, at most until the event loop comes round.
"""

from __future__ import annotations

import asyncio
import math
import re
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from service.domain import limits
from service.web.fast_path.flow import FlowOfTurns
from service.web.problems import problem
from service.web.request_context import BODY_PACE, name_request
from service.web.request_metrics import count_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.web.fast_path.open_connections import OpenConnections

# What a client must take of an answer within the time that it has for a body: half of what a transport holds before it is full.
_LEAST_READ = 32 * 1024
# A client that is still sending would lose an answer whose connection closes at once.
_READING_SECONDS = 1.0
# A target that is a whole URL, and its authority without a user.
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#]*)")
_CROWD = 1.125  # times the limit, and those beyond it are closed without being read to
# What the parser gets at once: a waiting request takes forty times the memory of its bytes. Of a body more: each piece copies it.
_PIECE, _PIECE_OF_BODY = 4 * 1024, 32 * 1024


# No head of a body: a client may wait for it, and haproxy 2.6 loses the body of an answer whose head it reads together with it.
_GO_ON = b"HTTP/1.1 100 "


class SingleWriteTransport:
    """A transport that holds a first write back until the next one, or until the loop comes round."""

    __slots__ = ("_about_to_close", "_held", "_loop", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, about_to_close: Callable[[], None]) -> None:
        self._transport, self._loop = transport, loop
        self._about_to_close = about_to_close
        self.is_closing = transport.is_closing
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        """Hold it back, or send it with what is held back."""
        held = self._held
        if held is None and data.startswith(_GO_ON):
            self._transport.write(data)
        elif held is None:
            self._held = data
            self._loop.call_soon(self._flush)
        else:
            self._held = None
            self._transport.write(held + data)

    def write_whole(self, data: bytes) -> None:
        """Send an answer that is in one piece already."""
        if self._held is not None:
            self._flush()
        self._transport.write(data)

    def close(self) -> None:
        """Send what is held back, then close."""
        self._flush()
        if not self._transport.is_closing():
            self._about_to_close()
            self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, None
        if held is not None and not self._transport.is_closing():
            self._transport.write(held)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a transport has
        return getattr(self._transport, name)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's own protocol over such a transport, for clients that do their part in time; others get a problem."""

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - what uvicorn gives its protocol
        """A connection that has not been made yet."""
        super().__init__(*args, **named)
        self.deadline: float = math.inf
        """When the client must have done its part; infinite while it is our turn."""
        self.unread_deadline: float = math.inf
        """When a client that does not read must have gone on."""
        self._in_parser = False
        """The parser has seen the beginning of a request and not its end."""
        self._in_body = False
        """The parser has seen the head of that request."""
        self._advanced = True
        """The data received last held more than a part of a head or of a trailer."""
        self._heads = 0
        """Begun in the data received last."""
        self._parsing = 0
        """Bytes that the parser got last."""
        self._barren_bytes = 0
        """Received since the parser has advanced last."""
        self._objection: tuple[int, str, str] | None = None
        """Why the parser was stopped: status, code, detail."""
        self._is_refused = False
        """What the client sends is ignored until it has read that it was refused."""
        self._unread = 0
        self._unparsed = b""
        """What was read behind requests that wait for their turn: the parser gets it when they have had it."""
        self._is_last_request = False
        """The service stops: the request that is there, or comes next, is the last one of this connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn itself
        """Let every write of uvicorn's pass through, and begin to count the time; one too many is turned away."""
        single_write = SingleWriteTransport(transport, self.loop, self._expect_reading)
        self.write_whole = single_write.write_whole
        super().connection_made(cast("asyncio.Transport", single_write))
        self.flow = FlowOfTurns(cast("asyncio.Transport", single_write), self.pipeline)
        self._connections: OpenConnections = self.app.state.connections
        self._limits, others = self._connections.limits, self._connections.open
        self.deadline = self.loop.time() + self._limits.head_seconds
        others.add(self)
        if len(others) > self._limits.connections:
            detail = "This worker has as many connections as it may; try again in a moment."
            self._refuse(503, "too_many_connections", detail, {"Retry-After": "1"})
            if len(others) > self._limits.connections * _CROWD:
                self.transport.close()  # too many to wait until each has read it

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection: its deadlines are nobody's any more."""
        self._connections.open.discard(self)
        self._unparsed = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Let the parser have it piece by piece, as long as no request has to wait for its turn."""
        if self._unparsed:
            self._unparsed += data
        elif len(data) <= _PIECE:
            self._parse(data)
        else:
            self._parse_in_pieces(data)

    def _parse_in_pieces(self, data: bytes) -> None:
        begin = 0
        while begin < len(data) and not self.pipeline:
            end = begin + (_PIECE_OF_BODY if self._in_body else _PIECE)
            self._parse(data[begin:end])
            begin = end
        self._unparsed = data[begin:]

    def _parse(self, data: bytes) -> None:
        """Let the parser have it, as long as it gets anywhere with it: a head, or a trailer, that never ends is refused."""
        if self._is_refused:
            return
        was_in_parser, self._advanced, self._heads, self._parsing = self._in_parser, False, 0, len(data)
        super().data_received(data)
        is_one_head = self._heads == 1 and not (was_in_parser or self._in_body)
        if self._in_parser and (is_one_head or not self._advanced):
            self._barren_bytes += len(data)
            if self._barren_bytes > self._limits.head_bytes:
                self._objection = self._head_too_large()
                self.send_400_response("")

    def on_message_begin(self) -> None:
        """Remember that the parser is inside a request: bytes that follow belong to it."""
        self._in_parser, self._in_body = True, False
        self._advanced, self._barren_bytes = True, 0
        self._heads += 1
        if self.cycle is None or self.cycle.response_complete:
            self.deadline = self.loop.time() + self._limits.head_seconds
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Not more lines than anybody sends: in memory each takes many times its bytes."""
        if len(self.headers) >= limits.MOST_HEADERS:
            self._objection = 431, "head_too_large", f"The head of a request may have {limits.MOST_HEADERS} lines."
            raise ValueError(self._objection)  # stops the parser
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head must not be larger than allowed; the body has its own time."""
        most = self._limits.head_bytes
        is_in_one_piece = self._heads > 0  # and no longer than that piece, which nearly always says enough
        if (not is_in_one_piece or self._parsing > most) and self._head_bytes() > most:
            self._objection = self._head_too_large()
            raise ValueError(self._objection)  # stops the parser
        if not self.url.startswith(b"/"):
            self._believe_the_target()
        cast("dict[str, Any]", self.scope)[BODY_PACE] = self  # for routes that read a body as it comes
        super().on_headers_complete()
        if self._is_last_request:
            self.cycle.keep_alive = False
        self._in_body = self._advanced = True
        self._barren_bytes = 0
        if not self.pipeline:
            self.deadline = self.loop.time() + self._limits.body_seconds

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _believe_the_target(self) -> None:
        """Where the target is a whole URL, its authority is the host that is meant, whatever `Host` says (RFC 9112, 3.2.2)."""
        absolute = _ABSOLUTE.match(self.url)
        if absolute is not None:
            self.headers[:] = [(name, absolute[1] if name == b"host" else value) for name, value in self.headers]

    def await_body(self) -> None:
        """It is the client's turn, whose body may be long: it has as long again for the next part."""
        if self._in_body:
            self.deadline = self.loop.time() + self._limits.body_seconds

    def hold_body(self) -> None:
        """It is our turn, although the body has not ended."""
        if self._in_body:
            self.deadline = math.inf

    def on_body(self, body: bytes) -> None:
        """Count the request as advancing: part of its body has arrived."""
        self._advanced, self._barren_bytes = True, 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Remember that the parser is through: it is our turn, unless the answer was early."""
        self._in_parser = self._in_body = False
        self._advanced = True
        super().on_message_complete()
        self.deadline = self.loop.time() + self._limits.keep_alive_seconds if self.cycle.response_complete else math.inf

    def on_response_complete(self) -> None:
        """Do as uvicorn does, but write a deadline down instead of starting a timer for each answer."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            if not self.pipeline and not self.transport.is_closing():
                self._parse_in_pieces(self._unparsed)
                self.flow.resume_reading()
            if not self._is_refused:
                is_awaited = self._in_parser and not self.pipeline
                self.deadline = self.loop.time() + self._limits.body_seconds if is_awaited else math.inf
            return
        self.server_state.total_requests += 1
        if self.flow.read_paused:
            self.flow.resume_reading()
        if not self._in_parser:
            self.deadline = self.loop.time() + self._limits.keep_alive_seconds
        elif self._objection is not None:
            self.send_400_response("")  # what followed this request could not be read
        else:
            self.deadline = self.loop.time() + self._limits.head_seconds

    def shutdown(self) -> None:
        """Stop with the request that is there; a connection that waits for one has a while to send it.

        A proxy may be sending one just now: closed on it, it could not know whether the request took effect, and would fail it.
        """
        self._is_last_request = True
        if self._limits.drain_seconds and (self.cycle is None or self.cycle.response_complete):
            self.deadline = min(self.deadline, self.loop.time() + self._limits.drain_seconds)
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write: it must go on in time."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """Lift the deadline: the client has read what was written. Not if that was the last: then all of it must be read."""
        if not self.transport.is_closing():
            self.unread_deadline = math.inf
        super().resume_writing()

    def _expect_reading(self) -> None:
        """From now on the client must read. Also before it is closed: a transport waits for ever until all it has is read."""
        self._unread = self.transport.get_write_buffer_size()
        self.unread_deadline = self.loop.time() + self._limits.body_seconds

    def leave_unread(self) -> None:
        """Give the client up, unless it has read enough since: a byte at a time would keep the rest here for ever."""
        if self._unread - self.transport.get_write_buffer_size() < _LEAST_READ:
            self.transport.abort()
        else:
            self._expect_reading()

    def give_up(self) -> None:
        """Close it as it is."""
        self.transport.abort()

    def has_begun(self) -> bool:
        """Is part of a request there?"""
        return self._in_parser

    def time_out(self) -> None:
        """The client has not done its part: a request that has begun is refused, and an idle connection closed."""
        if self._is_refused or not self.has_begun() or self.transport.is_closing():
            self.deadline = math.inf
            self.transport.close()
            return
        what = "body" if self._in_body else "head"
        self._refuse(408, "request_timeout", f"The {what} of the request did not arrive in time.")

    def send_400_response(self, msg: str) -> None:
        """A problem instead of uvicorn's text, when the requests before this one are answered."""
        status, code, detail = self._objection = self._objection or (400, "malformed_request", msg)
        if self.pipeline or (not self._in_body and self.cycle is not None and not self.cycle.response_complete):
            self._in_parser = self._is_refused = True
        else:
            self._refuse(status, code, detail)

    def _head_too_large(self) -> tuple[int, str, str]:
        return 431, "head_too_large", f"The head of a request may have {self._limits.head_bytes // 1024} KiB."

    def _refuse(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        """Send a problem and close, but not before the client had a moment to read it: what it still sends is ignored."""
        self._in_parser = self._is_refused = True
        self.deadline = self.loop.time() + _READING_SECONDS
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.pipeline or getattr(self.cycle, "response_started", False):
                self.transport.close()  # an answer is under way, to this request or to one before it
                return
        given = next((value for name, value in self.headers or () if name == b"x-request-id"), b"")
        self.write_whole(copy_context().run(self._problem, given, status, code, detail, dict(headers or {})))
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _problem(self, given: bytes, status: int, code: str, detail: str, headers: dict[str, str]) -> bytes:
        headers |= {"X-Request-Id": name_request(given).decode(), "Connection": "close"}
        refusal = problem(status, code, detail, headers=headers)
        count_request("other", "other", status, 0.0)
        if (log := self.app.state.access_log) is not None:
            name = headers["X-Request-Id"]
            log.write("other", "other", {}, status, seconds=0.0, size=len(refusal.body), request_id=name, caller=None)
        lines = [STATUS_LINE[status]]
        lines += [b"%b: %b\r\n" % header for header in (*self.server_state.default_headers, *refusal.raw_headers)]
        return b"".join((*lines, b"\r\n", bytes(refusal.body)))
