"""Asks beside a pruning of a million assignments: how long they take, how long locks are held, what comes back of the disk.

    python -m benchmarks.pruning [--draws N] [--seconds S] [--rounds R] [--engines E …] [--only-space]

On each database an experiment of a million draws, each told, is pruned while another one is asked, at a rate that leaves the
machine time (paced) and as fast as it answers (full). The pruning is stopped and taken up again, so that asks alone and asks
beside it take turns within one run: what the machine does meanwhile happens to both. Its transactions are timed inside, from the
moment that they hold the lock until they are committed. What a pruning alone does to the disk is measured on a second database,
which nobody asks. Writes benchmarks/results/pruning.json; `--only-space` adds that part to what is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import msgspec

from benchmarks.hot_path import RESULTS
from benchmarks.load import Seen, wrk
from benchmarks.stored_draws import ENGINES, Place, place, write_draws
from service.application.commands.prune import prunable, prune
from service.engine.clock import now_microseconds
from service.storage.database import Connection, Database
from testing.server import Server

_CONNECTIONS = 16
_LONGEST_PAUSE = 60
_HOT = "/v1/experiments/hot/assignments"
_WAYS = ("paced", "full")


class TimedDatabase(Database):
    """Notes how long each transaction has held its lock."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.held: list[float] = []

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """From the first statement inside, which has the lock on SQLite, to the end of the commit."""
        began = 0.0
        try:
            async with super().writing() as connection:
                began = time.perf_counter()
                yield connection
        finally:
            if began:
                self.held.append(time.perf_counter() - began)


class Ended(msgspec.Struct):
    """A pruning that has ended, or was stopped: rows that went, and how long each transaction held its lock."""

    rows: int
    seconds: float
    finished: bool
    held: list[float]


async def _prune(url: str, until: asyncio.Event) -> Ended:
    """Prune until it is done or told to stop."""
    database, removed, began = TimedDatabase(url), 0, time.monotonic()

    def count(rows: int) -> None:
        nonlocal removed
        removed += rows

    before = now_microseconds()
    [found] = await prunable(database, before, ["old"])
    doing = asyncio.create_task(prune(database, found, before, count))
    stopping = asyncio.create_task(until.wait())
    await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finished = doing.done()
    doing.cancel()
    stopping.cancel()
    await asyncio.gather(doing, stopping, return_exceptions=True)
    await database.close()
    return Ended(removed, time.monotonic() - began, finished, database.held)


def pruning_process(url: str) -> None:
    """The pruning as a process of its own, as the command is; a signal ends it between two chunks."""

    async def run() -> None:
        until = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, until.set)
        print(msgspec.json.encode(await _prune(url, until)).decode(), flush=True)

    asyncio.run(run())


def _begin(url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.pruning", "--process", url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    time.sleep(3)  # until it is at it
    return process


def _ended(process: subprocess.Popen[str], *, stop: bool) -> Ended:
    if stop:
        process.terminate()
    said, _ = process.communicate(timeout=7_200)
    return msgspec.json.decode(said, type=Ended)


def asked(server: Server, way: str, seconds: float) -> Seen:
    """Asks of the other experiment."""
    seed = f"{time.time_ns():x}-"
    pause = _LONGEST_PAUSE if way == "paced" else 0
    return wrk(server.url, "paced_ask.lua", _HOT, str(pause), seed, connections=_CONNECTIONS, seconds=seconds)


def space(where: Place, url: str) -> float:
    """Megabytes on the disk."""
    if where.postgres is None:
        file = url.removeprefix("sqlite:///")
        return sum(Path(f"{file}{suffix}").stat().st_size for suffix in ("", "-wal") if Path(f"{file}{suffix}").exists()) / 1e6
    database = url.partition("@/")[2].partition("?")[0]
    return float(where.postgres.sql("SELECT pg_database_size(current_database())", database)) / 1e6


def given_back(where: Place, url: str) -> dict[str, dict[str, float]]:
    """What the database needs to give the space back, and how long that takes; nobody asks meanwhile."""
    found = {}
    for statement in ("VACUUM",) if where.postgres is None else ("VACUUM", "VACUUM FULL"):
        began = time.monotonic()
        if where.postgres is None:
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as opened:
                opened.execute(statement)
                opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            where.postgres.sql(statement, url.partition("@/")[2].partition("?")[0])
        found[statement] = {"seconds": time.monotonic() - began, "megabytes": space(where, url)}
    return found


class Rounds:
    """Asks alone and beside the pruning, in turn."""

    def __init__(self, url: str, server: Server, seconds: float) -> None:
        self._url, self._server, self._seconds = url, server, seconds
        names = [f"{way}, {when}" for way in _WAYS for when in ("alone", "beside")]
        self.p99: dict[str, list[float]] = {name: [] for name in names}
        self.rates: dict[str, list[float]] = {name: [] for name in names}
        self.ended: list[Ended] = []

    def run(self, number: int) -> None:
        """One round of each way to ask, every other time in the opposite order."""
        for way in _WAYS:
            for when in ("alone", "beside")[:: 1 if number % 2 == 0 else -1]:
                process = _begin(self._url) if when == "beside" else None
                one, name = asked(self._server, way, self._seconds), f"{way}, {when}"
                if process is not None:
                    self.ended.append(_ended(process, stop=True))
                    if self.ended[-1].finished:
                        raise SystemExit("The pruning was over before the rounds were: take fewer rounds, or more draws.")
                self.p99[name].append(one.p99_ms)
                self.rates[name].append(one.per_second)
                print(f"{number + 1} {name:14s} p99 {one.p99_ms:7.1f} ms, {one.per_second:7,.0f}/s", flush=True)

    def finish(self) -> None:
        """Let the pruning come to its end."""
        while not any(one.finished for one in self.ended):
            self.ended.append(_ended(_begin(self._url), stop=False))

    def ratios(self) -> dict[str, object]:
        """How much longer the slowest hundredth takes beside the pruning."""
        found: dict[str, object] = {}
        for way in _WAYS:
            pairs = zip(self.p99[f"{way}, beside"], self.p99[f"{way}, alone"], strict=True)
            values = [beside / alone for beside, alone in pairs]
            found[way] = {"median": statistics.median(values), "range": [min(values), max(values)]}
        return found

    def locks(self) -> dict[str, float]:
        """How long the pruning's transactions held theirs, in milliseconds."""
        held = sorted(1e3 * value for one in self.ended for value in one.held)
        return {"median": statistics.median(held), "p99": held[int(0.99 * len(held))], "longest": held[-1], "number": len(held)}


def measure(engine: str, draws: int, seconds: float, rounds: int) -> dict[str, object]:
    """One database."""
    with place(engine) as where:
        url = where.new()
        write_draws(url, "old", draws)
        sizes = {"before": space(where, url)}
        with Server(url) as server, server.client() as client:
            arms = [{"key": f"a{arm}"} for arm in range(10)]
            client.post("/v1/experiments", json={"key": "hot", "arms": arms}).raise_for_status()
            asked(server, "full", 3)
            turns = Rounds(url, server, seconds)
            for number in range(rounds):
                turns.run(number)
            turns.finish()
            sizes["after"] = space(where, url)
        return {
            "p99_beside_against_alone": turns.ratios(),
            "lock_ms": turns.locks(),
            "rows": sum(one.rows for one in turns.ended),
            "seconds": sum(one.seconds for one in turns.ended),
            "megabytes": sizes,
            "given_back": given_back(where, url),
            "p99_ms": turns.p99,
            "asks_per_second": turns.rates,
        }


def space_alone(engine: str, draws: int) -> dict[str, object]:
    """What a pruning that nothing else happens beside leaves on the disk, and what is given back of it."""
    with place(engine) as where:
        url = where.new()
        write_draws(url, "old", draws)
        before = space(where, url)
        ended = _ended(_begin(url), stop=False)
        after = space(where, url)
        sizes = {"before": before, "after": after}
        return {"draws": draws, "rows": ended.rows, "megabytes": sizes, "given_back": given_back(where, url)}


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--only-space", action="store_true")
    parser.add_argument("--process")
    chosen = parser.parse_args()
    if chosen.process:
        pruning_process(chosen.process)
        return
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load_before": os.getloadavg()[0]}
    results = RESULTS / "pruning.json"
    for engine in chosen.engines:
        kept = json.loads(results.read_text()) if results.exists() else {}
        measured: dict[str, object] = kept.get(engine, {})
        if not chosen.only_space:
            of_run = {"draws": chosen.draws, "seconds_of_a_turn": chosen.seconds, "machine": machine}
            measured = of_run | measure(engine, chosen.draws, chosen.seconds, chosen.rounds)
        measured = measured | {"without_traffic": space_alone(engine, chosen.draws)}
        print(json.dumps(measured, indent=1))
        results.write_text(json.dumps(kept | {engine: measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
