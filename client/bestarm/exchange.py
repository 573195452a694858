"""One call to the service without any input or output: what is sent, when again, and what the answer means.

A `Flow` is a generator. It yields what is to be done next, a `Try` or a `Wait`, and is sent what came of it; `blocking.py` and
`asynchronous.py` do it. So the retries, the deadline and the meaning of answers are written once for both clients.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple, TypeAlias, TypeVar

from bestarm.assignment import Json
from bestarm.deadline import Deadline
from bestarm.errors import OTHERS_MAY_SAY, DeadlineExceeded, Error, MalformedAnswer, Unavailable, Unreachable, problem_of

T = TypeVar("T")
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
# A mistake in a header, of whoever stands before the service, must not silence a client for good.
LONGEST_RETRY_AFTER = 3_600.0
_OK = 299
_REFUSED = 400
_SERVER_ERROR = 500
_NOT_MODIFIED = 304


@dataclass(frozen=True, slots=True)
class Call:
    """A request. Sent again, it has the same effect once."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Answer(NamedTuple):
    """What came back, whole."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Try(NamedTuple):
    """Send this, and be back by then with an `Answer` or with the error."""

    call: Call
    deadline: Deadline


class Wait(NamedTuple):
    """Let some time pass."""

    seconds: float


Outcome: TypeAlias = Answer | Error | None
Flow: TypeAlias = Generator[Try | Wait, Outcome, T]


def sent_once(call: Call, read: Callable[[Answer], T], deadline: Deadline) -> Flow[T]:
    """The answer as `read` understands it, for whoever has other things to do before the next try."""
    return _understood((yield Try(call, deadline)), read)


def sent(call: Call, read: Callable[[Answer], T], deadline: Deadline) -> Flow[T]:
    """The answer as `read` understands it, tried again while that may help and there is time.

    If the time ends within a later try, what the one before met is raised: it says more than that the time is over.
    """
    tries = 0
    before: Error | None = None
    while True:
        try:
            return (yield from sent_once(call, read, deadline))
        except DeadlineExceeded:
            if before is None:
                raise
            raise before from before.__cause__
        except (Unreachable, MalformedAnswer, Unavailable) as trouble:
            tries += 1
            before = trouble
            seconds = pause(tries, trouble)
            if seconds >= deadline.left():
                raise
        yield Wait(seconds)


def pause(tries: int, trouble: Error) -> float:
    """How long to wait before the next try: full jitter, so that callers who failed together do not come back together."""
    jitter = random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(tries - 1, 16)))  # noqa: S311 - no secret
    asked = trouble.retry_after if isinstance(trouble, Unavailable) else None
    return jitter + (asked or 0.0)


def _understood(outcome: Outcome, read: Callable[[Answer], T]) -> T:
    if not isinstance(outcome, Answer):
        raise outcome or DeadlineExceeded("Nothing was sent.")
    refuse(outcome)
    try:
        return read(outcome)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as trouble:
        raise MalformedAnswer(f"This is no answer of the service: {outcome.content[:80]!r} ({trouble})") from trouble


def refuse(outcome: Answer) -> None:
    """Raise what an answer says that is none to be read."""
    if _OK < outcome.status < _REFUSED and outcome.status != _NOT_MODIFIED:
        raise MalformedAnswer(f"The service does not answer with HTTP {outcome.status}.")
    if outcome.status < _REFUSED:
        return
    problem = _problem(outcome)
    if outcome.status < _SERVER_ERROR and outcome.status not in OTHERS_MAY_SAY and not isinstance(problem.get("code"), str):
        raise MalformedAnswer(f"HTTP {outcome.status} is not from the service: {outcome.content[:80]!r}")
    raise problem_of(outcome.status, problem, retry_after=retry_after(outcome.headers))


def _problem(answer: Answer) -> dict[str, Json]:
    """What a refusal says, if it is one of the service (RFC 9457); whatever stands before it says it in other words."""
    named = {"request_id": answer.headers.get("x-request-id")}
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return named
    try:
        written = json.loads(answer.content)
    except (ValueError, RecursionError):
        return named
    return named | written if isinstance(written, dict) else named


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from seconds or from a date, an hour at most."""
    written = headers.get("retry-after", "").strip()
    try:
        asked = float(written) if written.isdecimal() else (parsedate_to_datetime(written) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(asked, 0.0), LONGEST_RETRY_AFTER)
