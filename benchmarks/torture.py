"""Break everything that can break under a live service and count what is lost: `make torture`, fifty minutes.

    python -m benchmarks.torture [--seconds S] [--only PART ...] [--page]

Every part writes what it found into benchmarks/results/torture.json as soon as it is done; docs/reliability.md is made of that.
A part that breaks a promise ends with exit code 1, and what broke is said at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from benchmarks.hot_path import RESULTS
from benchmarks.reliability_page import write_page
from benchmarks.reliability_promises import broken_in
from testing.databases import migrate_now
from testing.postgres import Postgres
from testing.server import ADMIN_KEY, Server
from testing.torture import documented, greedy, overload, soak
from testing.torture.campaign import faults_of, play
from testing.torture.differential import compare
from testing.torture.odd_bytes import cases
from testing.torture.stage import Stage, pair_stage, postgres_stage, sqlite_stage
from testing.torture.ways_in import WAYS, Side, Way, both, sides

RESULT = RESULTS / "torture.json"
_QUEUE_LIMIT = 128
# Parts of the time. Of what is not a fault it is the time of one measurement.
_FAULTS: dict[str, tuple[Callable[[], AbstractContextManager[Stage]], float]] = {
    "sqlite": (sqlite_stage, 0.25),
    "postgresql": (postgres_stage, 0.5),
    "synchronous": (partial(pair_stage, synchronous=True), 0.13),
    "asynchronous": (partial(pair_stage, synchronous=False), 0.04),
}
# For which faults say how long they last and how often they are played.
_FULL_SECONDS = 1_500.0
_SOAK, _OVERLOAD = 0.08, 0.004
# In the full campaign, by each way in and on each database: more than 50,000 together.
_CASES, _DOCUMENTED = 14_000, 5_000


def faults(part: str, seconds: float) -> list[dict[str, Any]]:
    """Every fault of a stage."""
    staged, share = _FAULTS[part]
    with staged() as stage:
        outcomes = play(stage, faults_of(stage), share * seconds, say, min(1.0, seconds / _FULL_SECONDS))
        return [outcome.row() | outcome.details() for outcome in outcomes]


def with_postgres(measure: Callable[[str], Any]) -> Any:  # noqa: ANN401 - JSON
    """Something on a PostgreSQL that keeps its promises."""
    with Postgres(fsync="on", full_page_writes="on") as postgres:
        postgres.sql("CREATE DATABASE torture")
        migrate_now(postgres.url("torture"))
        return measure(postgres.url("torture"))


def fuzz(cases_of_each: int) -> list[dict[str, Any]]:
    """The same bytes to the service and to the application under stock uvicorn, by all ways at the same time."""

    def row(way: Way) -> dict[str, Any]:
        return {"way": way, **compare(reached[way], cases(way, cases_of_each)).row()}

    with ExitStack() as opened, ThreadPoolExecutor(len(WAYS)) as threads:
        reached = {way: opened.enter_context(reached_by(way)) for way in WAYS}
        return [*threads.map(row, WAYS)]


@contextmanager
def reached_by(way: Way) -> Iterator[tuple[Side, Side]]:
    """Both by one way, on databases of their own."""
    with tempfile.TemporaryDirectory(prefix="bestarm-torture-") as folder:
        ours, stock = (f"sqlite:///{folder}/{name}.db" for name in ("ours", "stock"))
        migrate_now(ours)
        migrate_now(stock)
        with both(ours, stock) as servers, sides(servers, way) as reached:
            yield reached


def document(cases_of_each: int) -> list[dict[str, Any]]:
    """Requests made from the OpenAPI document, on both databases."""
    with tempfile.TemporaryDirectory(prefix="bestarm-torture-") as folder:
        url = f"sqlite:///{folder}/documented.db"
        migrate_now(url)
        on_sqlite = document_on(url, cases_of_each)
    return [on_sqlite, with_postgres(partial(document_on, cases=cases_of_each))]


def document_on(url: str, cases: int) -> dict[str, Any]:
    """On one."""
    with Server(url, key=ADMIN_KEY) as server:
        return {"engine": "sqlite" if url.startswith("sqlite") else "postgresql", **documented.play(server, cases).row()}


PARTS: dict[str, Callable[[float], Any]] = {
    "fuzz": lambda seconds: fuzz(int(_CASES * seconds / _FULL_SECONDS)),
    "document": lambda seconds: document(int(_DOCUMENTED * seconds / _FULL_SECONDS)),
    **{name: partial(faults, name) for name in _FAULTS},
    "greedy": lambda _: with_postgres(greedy.measure),
    "overload": lambda seconds: with_postgres(lambda url: overload.measure(url, max(2.0, _OVERLOAD * seconds), _QUEUE_LIMIT)),
    "soak": lambda seconds: with_postgres(lambda url: soak.measure(url, _SOAK * seconds)),
    "long soak": lambda _: with_postgres(lambda url: soak.measure(url, 1_800)),
}
_WHOLE = [name for name in PARTS if name != "long soak"]


def say(what: str) -> None:
    """On the way."""
    print(what, flush=True)


def main() -> None:
    """Play, keep, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=_FULL_SECONDS)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=_WHOLE)
    parser.add_argument("--beside", default="nothing else", help="What else ran on the machine, for the page.")
    parser.add_argument("--page", action="store_true", help="Write the page anew from the result, and play nothing.")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that whatever was started is ended
    found = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for part in () if chosen.page else chosen.only:
        say(f"== {part}")
        began = time.monotonic()
        result = PARTS[part](chosen.seconds)
        found[part] = {
            "result": result,
            "took_seconds": round(time.monotonic() - began),
            "beside": chosen.beside,
            "load": [round(one, 1) for one in os.getloadavg()],
            "machine": {"python": platform.python_version(), "cores": os.cpu_count()},
        }
        RESULT.write_text(json.dumps(found, indent=1) + "\n")
    write_page(found)
    broken = [what for part in chosen.only if not chosen.page for what in broken_in(part, found[part]["result"])]
    for what in broken:
        say(f"BROKEN: {what}")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
