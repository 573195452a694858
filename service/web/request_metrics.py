"""Requests counted and timed for operators, and the page that Prometheus reads.

With several workers each process writes its numbers to a folder that `bestarm serve` made (PROMETHEUS_MULTIPROC_DIR), and
whichever worker is asked adds them up.
"""

from __future__ import annotations

import os
from collections import Counter as Tally
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.domain.callers import Caller

MEDIA_TYPE = CONTENT_TYPE_LATEST
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
# One series for both questions, how many and how fast, because each number that is kept costs every request a microsecond.
_REQUESTS = Histogram(
    "bestarm_request_seconds",
    "From a request's arrival until its answer began.",
    ["method", "route", "status"],
    buckets=(0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 4, 16),
)
_PROBLEMS = Counter("bestarm_problems", "Refused or failed requests, by the code of the answer: reward_conflict, …", ["code"])
_KEY_REQUESTS = Counter(
    "bestarm_key_requests",
    "Answered requests, by the id of their key; open: no keys; none: no good one, or none needed.",
    ["key"],
)
_AUTH_FAILURES = Counter(
    "bestarm_auth_failures", "Requests refused for their key: missing, malformed, unknown, expired, revoked, scope, …", ["reason"]
)
# Reasons for which a request is refused for its key, and those for which a sign-in with an account is.
_OF_KEYS = ("missing", "malformed", "unknown", "expired", "revoked", "scope", "experiment", "origin")
AUTH_FAILURES = (*_OF_KEYS, "state", "provider", "code", "id_token")
# Alerts go by how much these grow. A series that appears at its first event has not grown, so they are shown from the start.
_WATCHED_PROBLEMS = ("internal_error", "overloaded")
for _code in _WATCHED_PROBLEMS:
    _PROBLEMS.labels(_code)
for _reason in AUTH_FAILURES:
    _AUTH_FAILURES.labels(_reason)
# How often the requests by key are added to what is shown: to count each by itself would cost it another microsecond or two.
KEYS_COUNTED_SECONDS = 0.5
# Keys that have a series of their own in each worker, the first ones that are used; all others share one.
_MOST_KEYS = 100
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_by_key: Tally[str] = Tally()
"""Counted, and not yet shown."""
_named_keys: set[str] = set()


def method_label(method: str) -> str:
    """A method; those that a client invents count as one."""
    return method if method in _METHODS else "other"


def route_label(scope: Mapping[str, Any]) -> str:
    """The template of a request's route, which the router leaves in the scope; what matched nothing must not make a series."""
    return getattr(scope.get("route"), "path", "other")


@cache  # few: routes are templates, and methods that a client invents count as one
def _series(method: str, route: str, status: int) -> Histogram:
    return _REQUESTS.labels(method, route, status)


def count_request(method: str, route: str, status: int, seconds: float, caller: Caller | None = None) -> None:
    """One request was answered; its caller is None where none was needed, or it was refused as nobody's."""
    _series(method, route, status).observe(seconds)
    _by_key["none" if caller is None else caller.id or "open"] += 1


def count_auth_failure(reason: str) -> None:
    """One request was refused for its key, or for want of one."""
    _AUTH_FAILURES.labels(reason).inc()


async def show_requests_by_key() -> None:
    """Add what was counted since the last time. In the event loop, where it is counted."""
    counted = list(_by_key.items())
    _by_key.clear()
    for key, requests in counted:
        if key not in _named_keys and len(_named_keys) < _MOST_KEYS:
            _named_keys.add(key)
        _KEY_REQUESTS.labels(key if key in _named_keys or key in {"open", "none"} else "other").inc(requests)


@cache  # few: codes are ours
def _problems(code: str) -> Counter:
    return _PROBLEMS.labels(code)


def count_problem(code: str) -> None:
    """One request was answered with a problem."""
    _problems(code).inc()


def exposition() -> bytes:
    """All numbers of all workers, in Prometheus' text format."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return generate_latest(REGISTRY)
    _forget_dead_workers(Path(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def _forget_dead_workers(folder: Path) -> None:
    """What a worker that died was holding (its queue) is gone; what it had done still counts."""
    for left in folder.glob("gauge_live*_*.db"):
        worker = int(left.stem.rpartition("_")[2])
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            left.unlink(missing_ok=True)  # another worker may be faster
