"""Break everything that can break under a live service and count what is lost: `make torture`, fifty minutes.

    python -m benchmarks.torture [--seconds S] [--only PART ...] [--trial] [--page]

Every part writes what it found into benchmarks/results/torture.json as soon as it is done; docs/reliability.md is made of that.
A part that breaks a promise, or cannot be played to its end, makes exit code 1, and what broke is said at the end.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import signal
import sys
import tempfile
import time
import traceback
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
from testing.torture.campaign import database_faults, faults_of, play, service_faults
from testing.torture.differential import compare
from testing.torture.fault import Fault
from testing.torture.odd_bytes import cases
from testing.torture.stage import Stage, pair_stage, postgres_stage, sqlite_stage
from testing.torture.ways_in import WAYS, Side, Way, both, sides

RESULT = RESULTS / "torture.json"
_QUEUE_LIMIT = 128
# Parts of the time. Of what is not a fault it is the time of one measurement.
_FAULTS: dict[str, tuple[Callable[[], AbstractContextManager[Stage]], Callable[[Stage], list[Fault]], float]] = {
    "sqlite": (sqlite_stage, faults_of, 0.2),
    "services": (postgres_stage, service_faults, 0.25),
    "postgresql": (postgres_stage, database_faults, 0.25),
    "synchronous": (partial(pair_stage, synchronous=True), database_faults, 0.1),
    "asynchronous": (partial(pair_stage, synchronous=False), database_faults, 0.03),
}
# For which faults say how long they last and how often they are played.
_FULL_SECONDS = 1_500.0
_SOAK, _OVERLOAD = 0.08, 0.004
# In the full campaign, by each way in and on each database: more than 50,000 together.
_CASES, _DOCUMENTED = 14_000, 5_000


def faults(part: str, seconds: float) -> list[dict[str, Any]]:
    """Every fault of a part."""
    staged, chosen, share = _FAULTS[part]
    outcomes = play(staged, chosen, share * seconds, say, min(1.0, seconds / _FULL_SECONDS))
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


def keep(part: str, played: dict[str, Any]) -> None:
    """Put a part into the result, into which others may write at the same time."""
    with RESULT.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        found: dict[str, Any] = json.loads(file.read() or "{}") | {part: played}
        file.truncate(0)
        file.write(json.dumps(found, indent=1) + "\n")
        write_page(found)


def main() -> None:
    """Play, keep, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=_FULL_SECONDS)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=_WHOLE)
    parser.add_argument("--beside", default="nothing else", help="What else ran on the machine, for the page.")
    parser.add_argument("--trial", action="store_true", help="Play, and leave result and page as they are.")
    parser.add_argument("--page", action="store_true", help="Write the page anew from the result, and play nothing.")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that whatever was started is ended
    if chosen.page:
        write_page(json.loads(RESULT.read_text()))
        return
    broken = [what for part in chosen.only for what in _broken_by(part, chosen)]
    for what in broken:
        say(f"BROKEN: {what}")
    sys.exit(bool(broken))


def _broken_by(part: str, chosen: argparse.Namespace) -> list[str]:
    """Play a part and keep what it came to; what it broke. One that cannot be played keeps no other from it."""
    say(f"== {part}")
    began = time.monotonic()
    try:
        result = PARTS[part](chosen.seconds)
    except Exception as failure:  # noqa: BLE001 - whatever it is, it is told at the end and fails the campaign
        traceback.print_exc()
        return [f"{part}: could not be played to its end: {failure!r:.500}"]
    played = {
        "result": result,
        "took_seconds": round(time.monotonic() - began),
        "beside": chosen.beside,
        "load": [round(one, 1) for one in os.getloadavg()],
        "machine": {"python": platform.python_version(), "cores": os.cpu_count()},
    }
    say(f"{part}: {played['took_seconds']} s")
    if not chosen.trial:
        keep(part, played)
    return broken_in(part, result)


if __name__ == "__main__":
    main()
