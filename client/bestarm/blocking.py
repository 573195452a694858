"""Flows, done by the calling thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import httpcore

from bestarm.deadline import Deadline, TimeLeft
from bestarm.errors import DeadlineExceeded, Error, Unreachable
from bestarm.exchange import Answer, Call, Flow, Outcome, Try, refuse
from bestarm.forks import begin_anew_after_fork
from bestarm.network import DeadlineBackend
from bestarm.origin import IDLE_SECONDS, Origin, answer_of

T = TypeVar("T")
_OK = 200


class BlockingWire:
    """Connections to the service, shared by all threads of this process."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._open()
        begin_anew_after_fork(self)

    def _open(self) -> None:
        self._lock = threading.Lock()
        self._backend = DeadlineBackend()
        self._pool: httpcore.ConnectionPool | None = None

    def forked(self) -> None:
        """Leave the parent's connections to the parent."""
        self._backend.abandon()
        self._open()

    def _connections(self) -> httpcore.ConnectionPool:
        with self._lock:
            if self._pool is None:
                self._pool = httpcore.ConnectionPool(
                    ssl_context=self._origin.ssl_context,
                    max_connections=self._origin.max_connections,
                    keepalive_expiry=IDLE_SECONDS,
                    network_backend=self._backend,
                )
            return self._pool

    def run(self, flow: Flow[T]) -> T:
        """Do what the flow asks for until it returns or raises."""
        outcome: Outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            if isinstance(step, Try):
                outcome = self._tried(step.call, step.deadline)
            else:
                outcome = None
                time.sleep(step.seconds)

    def _tried(self, call: Call, deadline: Deadline) -> Answer | Error:
        """One request. Whatever happens to it is an outcome: nothing that a network can do may reach a caller unnamed."""
        left = TimeLeft.until(deadline)
        if left <= 0:
            return DeadlineExceeded("There was no time left to send it.")
        try:
            response = self._connections().request(
                call.method,
                self._origin.url_of(call),
                headers=self._origin.headers_of(call),
                content=call.body,
                extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), left)},
            )
            return answer_of(response)
        except Exception as trouble:  # noqa: BLE001 - see above
            return failure(trouble)

    @contextmanager
    def stream(self, call: Call, connect_seconds: float, silent_seconds: float) -> Iterator[Iterator[bytes]]:
        """An answer that goes on, in pieces. It fails if refused, and where the connection breaks or is silent for too long."""
        timeouts = {"connect": connect_seconds, "read": silent_seconds, "write": connect_seconds, "pool": connect_seconds}
        url, headers = self._origin.url_of(call), self._origin.headers_of(call)
        try:
            with self._connections().stream(call.method, url, headers=headers, extensions={"timeout": timeouts}) as response:
                if response.status != _OK:
                    response.read()
                    refuse(answer_of(response))
                yield response.iter_stream()
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError) as trouble:
            raise failure(trouble) from trouble

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


def failure(trouble: Exception) -> Error:
    """The error that a caller gets for what went wrong below."""
    if isinstance(trouble, Error):
        return trouble
    kind = DeadlineExceeded if isinstance(trouble, httpcore.TimeoutException | TimeoutError) else Unreachable
    failed = kind(f"{type(trouble).__name__}: {trouble}" if str(trouble) else type(trouble).__name__)
    failed.__cause__ = trouble
    return failed
