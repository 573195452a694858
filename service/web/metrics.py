"""Requests counted and timed for operators, and the page that Prometheus reads.

With several workers each process writes its numbers to a folder that `bestarm serve` made (PROMETHEUS_MULTIPROC_DIR), and
whichever worker is asked adds them up.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEDIA_TYPE = CONTENT_TYPE_LATEST
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
# One series for both questions, how many and how fast, because each number that is kept costs every request a microsecond.
_REQUESTS = Histogram(
    "bestarm_request_seconds",
    "From a request's arrival until its answer began.",
    ["method", "route", "status"],
    buckets=(0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 4, 16),
)
_PROBLEMS = Counter("bestarm_problems", "Refused or failed requests, by the code of the answer: reward_conflict, …", ["code"])


@cache  # few: routes are templates, and methods that a client invents count as one
def _series(method: str, route: str, status: int) -> Histogram:
    return _REQUESTS.labels(method, route, status)


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """One request was answered."""
    _series(method, route, status).observe(seconds)


def count_problem(code: str) -> None:
    """One request was answered with a problem."""
    _PROBLEMS.labels(code).inc()


class MetricsMiddleware:
    """Plain ASGI: counts each request under its route's template when its answer begins."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and count."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = perf_counter()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "other"
                # The router leaves its match in the scope; what matched nothing must not make a series of its own.
                route = getattr(scope.get("route"), "path", "other")
                count_request(method, route, message["status"], perf_counter() - began)
            await send(message)

        await self.app(scope, receive, send_counted)


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
