"""What can go wrong, as one tree; whoever catches `Error` has caught it all.

bestarm.Error
├── Unreachable          no answer: refused, reset, a name that does not resolve
├── DeadlineExceeded     no answer in time
├── MalformedAnswer      an answer that is not the service's: a proxy's page, also one that says 404
└── Problem              the service refused, and says why
    ├── Unauthorized     401, 403: no key, or not this one
    ├── NotFound         404
    ├── Conflict         409, 412: the present state does not allow it
    ├── Invalid          any other 4xx: the request makes no sense, and will not when it is sent again
    └── Unavailable      408, 425, 429, 5xx: not now
"""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """A call that did not succeed. Decide by `code`; `detail` is for people."""

    code = "error"
    status: int | None = None
    request_id: str | None = None

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Unreachable(Error):
    """There was no answer, and what the service did is not known."""

    code = "unreachable"


class DeadlineExceeded(Error):
    """There was no answer in time, and what the service did is not known."""

    code = "deadline_exceeded"


class MalformedAnswer(Error):
    """Something answered, but not as the service does: a proxy's page, also one that says 404, or half an answer."""

    code = "malformed_answer"


class Problem(Error):
    """A refusal of the service (RFC 9457): its `code`, `status` and `request_id`, and `errors` where fields are at fault."""

    def __init__(self, status: int, problem: dict[str, Any], *, retry_after: float | None = None) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"HTTP {status}"))
        self.status = status
        self.code = str(problem.get("code") or f"http_{status}")
        self.request_id = problem.get("request_id")
        self.errors: list[dict[str, Any]] = problem.get("errors") or []
        self.retry_after = retry_after

    def __str__(self) -> str:
        named = f", request {self.request_id}" if self.request_id else ""
        return f"{self.detail} ({self.status} {self.code}{named})"


class Unauthorized(Problem):
    """No key, an unknown one, or one that does not allow this."""


class NotFound(Problem):
    """There is no such experiment, arm or assignment."""


class Conflict(Problem):
    """The present state does not allow it."""


class Invalid(Problem):
    """The request makes no sense, however often it is sent."""


class Unavailable(Problem):
    """The service cannot answer now; the same request may succeed later."""


_LATER = {408, 425, 429}
# Statuses whose meaning is the same, whoever stands before the service and says it.
OTHERS_MAY_SAY = {401, 403} | _LATER
_KINDS = {401: Unauthorized, 403: Unauthorized, 404: NotFound, 409: Conflict, 412: Conflict}
_SERVER_ERROR = 500


def problem_of(status: int, problem: dict[str, Any], *, retry_after: float | None = None) -> Problem:
    """The refusal, of its class."""
    is_temporary = status in _LATER or status >= _SERVER_ERROR
    return (Unavailable if is_temporary else _KINDS.get(status, Invalid))(status, problem, retry_after=retry_after)
