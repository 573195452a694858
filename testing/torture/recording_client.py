"""A client that writes down every call it makes, and sends again what was not answered."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from testing.torture.calls import Call, CallKind, CallLog

_TIMEOUT_SECONDS = 10.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.5
# When the faults are over everything is answered soon; what is not answered by then is left open.
_PATIENCE_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent, and what the checker has to know of it."""

    kind: CallKind
    experiment: str
    operation: str
    path: str
    method: str = "POST"
    body: dict[str, Any] | None = None
    sent: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    """The idempotency key."""


@dataclass(frozen=True, slots=True)
class Target:
    """The services, and how the keys of their experiments begin."""

    urls: Sequence[str]
    prefix: str


class RecordingClient:
    """One connection at a time, to any of the services."""

    def __init__(self, name: str, workload: str, target: Target, log: CallLog, ending: Event) -> None:
        self.name, self._workload, self._target, self._log, self._ending = name, workload, target, log, ending
        self.random = random.Random(name)  # noqa: S311 - it plays
        self._connection: http.client.HTTPConnection | None = None

    def experiment(self, name: str) -> str:
        """The key of one of the experiments."""
        return self._target.prefix + name

    def send(self, request: Request, timeout: float = _TIMEOUT_SECONDS) -> Call:
        """One attempt."""
        at, began = time.time(), time.monotonic()
        status, answer, replayed, trouble = None, None, False, ""
        try:
            reply = self._exchange(request, timeout)
            body = reply.read()
            status, replayed = reply.status, reply.headers["Idempotency-Replayed"] == "true"
            answer = json.loads(body) if body else None
        except (OSError, http.client.HTTPException, ValueError) as failure:
            status, trouble = None, type(failure).__name__
            self.close()
        ended = time.monotonic()
        kept = _kept(request.kind, answer) if status in {200, 201} else None
        if status is not None and kept is None:
            trouble = (answer or {}).get("code", "") if isinstance(answer, dict) else ""
        call = Call(
            client=self.name,
            workload=self._workload,
            experiment=request.experiment,
            kind=request.kind,
            operation=request.operation,
            sent=request.sent,
            began=began,
            ended=ended,
            at=at,
            status=status,
            answer=kept,
            replayed=replayed,
            trouble=trouble,
        )
        self._log.add(call)
        return call

    def until_definite(self, request: Request, timeout: float = _TIMEOUT_SECONDS) -> Call:
        """Attempts until it is known what became of it; at the end of the run, for a while only."""
        pause, gives_up_at = _FIRST_PAUSE_SECONDS, None
        while True:
            call = self.send(request, timeout)
            if self._ending.is_set() and gives_up_at is None:
                gives_up_at = time.monotonic() + _PATIENCE_SECONDS
            if call.is_definite or (gives_up_at is not None and time.monotonic() > gives_up_at):
                return call
            time.sleep(pause * self.random.uniform(0.5, 1.5))
            pause, timeout = min(2 * pause, _LONGEST_PAUSE_SECONDS), _TIMEOUT_SECONDS

    def _exchange(self, request: Request, timeout: float) -> http.client.HTTPResponse:
        connection = self._connection
        if connection is None:
            netloc = urlsplit(self.random.choice(self._target.urls)).netloc
            connection = self._connection = http.client.HTTPConnection(netloc, timeout=timeout)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        headers = {"content-type": "application/json"} | ({} if request.key is None else {"idempotency-key": request.key})
        connection.request(request.method, request.path, None if request.body is None else json.dumps(request.body), headers)
        return connection.getresponse()

    def close(self) -> None:
        """Leave; the next attempt connects anew, perhaps to another service."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _kept(kind: CallKind, answer: Any) -> Any:  # noqa: ANN401 - JSON
    """The part of an answer that is compared."""
    if kind == "ask":
        return _of_assignment(answer)
    if kind == "ask_many":
        return [_of_assignment(one) for one in answer["assignments"]]
    if kind == "look":
        arms = [[arm["arm"], arm["draws"], arm["pending"], arm["observations"], arm["mean"]] for arm in answer["arms"]]
        return {"version": answer["version"], "arms": arms}
    return {}


def _of_assignment(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("id", "arm", "draw")}
