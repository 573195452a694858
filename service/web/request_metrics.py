"""Requests counted and timed for operators, and the page that Prometheus reads.

With several workers each process writes its numbers to a folder that `bestarm serve` made (PROMETHEUS_MULTIPROC_DIR), and
whichever worker is asked adds them up.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

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


@cache  # few: routes are templates, and methods that a client invents count as one
def _series(method: str, route: str, status: int) -> Histogram:
    return _REQUESTS.labels(method, route, status)


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """One request was answered."""
    _series(method, route, status).observe(seconds)


def count_problem(code: str) -> None:
    """One request was answered with a problem."""
    _PROBLEMS.labels(code).inc()


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
