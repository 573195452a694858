"""Flows, done in an event loop (asyncio)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TypeVar

import httpcore

from bestarm.blocking import failure
from bestarm.deadline import Deadline, TimeLeft
from bestarm.errors import DeadlineExceeded, Error
from bestarm.exchange import Answer, Call, Flow, Outcome, Try, refuse
from bestarm.network import ResolvingBackend
from bestarm.origin import IDLE_SECONDS, Origin, answer_of

T = TypeVar("T")
_OK = 200


class AsyncWire:
    """Connections to the service, of each event loop its own: threads may run several, and a child of a fork begins anew."""

    def __init__(self, origin: Origin) -> None:
        with suppress(ImportError):  # what anyio would load at the first connection, and hold up the event loop for
            import_module("anyio._backends._asyncio")
        self._origin = origin
        self._pools: dict[tuple[int, asyncio.AbstractEventLoop], httpcore.AsyncConnectionPool] = {}

    def _connections(self) -> httpcore.AsyncConnectionPool:
        home = _home()
        pool = self._pools.get(home)
        if pool is None:
            self._forget_others_that_ended(home)
            pool = self._pools[home] = httpcore.AsyncConnectionPool(
                ssl_context=self._origin.ssl_context,
                max_connections=self._origin.max_connections,
                keepalive_expiry=IDLE_SECONDS,
                network_backend=ResolvingBackend(is_encrypted=self._origin.scheme == b"https"),
            )
        return pool

    def _forget_others_that_ended(self, home: tuple[int, asyncio.AbstractEventLoop]) -> None:
        """Programs that make an event loop for each piece of work would otherwise keep the connections of all."""
        for process, loop in list(self._pools):
            if process != home[0] or loop.is_closed():
                self._pools.pop((process, loop), None)

    async def run(self, flow: Flow[T]) -> T:
        """Do what the flow asks for until it returns or raises."""
        outcome: Outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            if isinstance(step, Try):
                outcome = await self._tried(step.call, step.deadline)
            else:
                outcome = None
                await asyncio.sleep(step.seconds)

    async def _tried(self, call: Call, deadline: Deadline) -> Answer | Error:
        """One request. Whatever happens to it is an outcome; only the caller's own cancellation passes through."""
        left = TimeLeft.until(deadline)
        if left <= 0:
            return DeadlineExceeded("There was no time left to send it.")
        try:
            async with asyncio.timeout(left):
                response = await self._connections().request(
                    call.method,
                    self._origin.url_of(call),
                    headers=self._origin.headers_of(call),
                    content=call.body,
                    extensions={"timeout": {"connect": left}},
                )
                return answer_of(response)
        except Exception as trouble:  # noqa: BLE001 - see above
            return failure(trouble)

    @asynccontextmanager
    async def stream(self, call: Call, connect_seconds: float, silent_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """An answer that goes on, in pieces. It fails if refused, and where the connection breaks or is silent for too long."""
        timeouts = {"connect": connect_seconds, "read": silent_seconds, "write": connect_seconds, "pool": connect_seconds}
        url, headers = self._origin.url_of(call), self._origin.headers_of(call)
        extensions = {"timeout": timeouts}
        try:
            async with self._connections().stream(call.method, url, headers=headers, extensions=extensions) as response:
                if response.status != _OK:
                    await response.aread()
                    refuse(answer_of(response))
                yield response.aiter_stream()
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError) as trouble:
            raise failure(trouble) from trouble

    async def close(self) -> None:
        """Close the connections of this event loop; the next request opens new ones."""
        pool = self._pools.pop(_home(), None)
        if pool is not None:
            await pool.aclose()


def _home() -> tuple[int, asyncio.AbstractEventLoop]:
    """The process and the event loop that a request is made in."""
    return os.getpid(), asyncio.get_running_loop()
