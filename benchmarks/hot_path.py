"""The hot path against its floors: everything in one run, alternating, several repetitions, ratios with their spread.

    python -m benchmarks.hot_path [--full] [--seconds S] [--repetitions R]

Writes benchmarks/results/hot_path.json (or hot_path_full.json) with every single figure, a table and a picture beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import subjects
from benchmarks.fairness import fairness
from benchmarks.load import Seen, pgbench, whole_seconds, wrk, wrk_listed
from benchmarks.picture import draw
from testing.postgres import Postgres
from testing.server import Server

Cell = Callable[[float], dict[str, float]]
HOT = "/v1/experiments/hot-"
NUMERIC = {"after_seconds": 86_400, "reward": 0}
# What is drawn for each second of telling: several times what could be told, or the cell would measure its list.
TELLS, BATCH_TELLS, NAIVE_TELLS = 40_000, 400_000, 3_000
RESULTS = Path(__file__).parent / "results"
# (what, numerator, denominator, wanted): a ratio of requests per second within one repetition.
RATIOS = (
    ("asks against the naive design", "ask", "naive ask", 25.0),
    ("asks against pgbench one by one", "ask", "pgbench", 5.0),
    ("asks against the raw route without database", "ask", "raw route", 0.5),
    ("tells against the naive design", "tell", "naive tell", 20.0),
    ("asks on 100 experiments against the naive design", "ask, 100 experiments", "naive ask, 100 experiments", 15.0),
    ("two workers against one", "ask, 2 workers", "ask", 0.7),
    ("SQLite against PostgreSQL", "ask, SQLite", "ask", 0.7),
    ("asks with a numeric expiry against those without", "ask, numeric expiry", "ask", 0.75),
    ("the same with 10,000 arms", "ask, numeric expiry, 10,000 arms", "ask, 10,000 arms", None),
    ("the mixed loop against asks alone", "loop", "ask", None),
    ("recommendation 304 against an empty FastAPI route", "304", "empty FastAPI route", 0.5),
)


@dataclass
class Tells:
    """First rewards of assignments that were drawn before the clock started, the latest first: the worker remembers these."""

    server: Server
    listed: Path
    connections: int
    batch: int
    _untold: list[str] = field(default_factory=list)

    def prepare(self, seconds: float) -> None:
        """Draw what is missing."""
        wanted = whole_seconds(seconds) * (BATCH_TELLS if self.batch else TELLS)
        with self.server.client() as client:
            while len(self._untold) < wanted:
                drawn = client.post(f"{HOT}0/assignments/batch", json={"count": 1_000}).raise_for_status().json()
                self._untold.extend(one["id"] for one in drawn["assignments"])

    def __call__(self, seconds: float) -> dict[str, float]:
        """Tell them one by one, or so many in a batch."""
        self.prepare(seconds)
        latest = self._untold[::-1]
        if self.batch:
            url, script, lines = f"{self.server.url}{HOT}0/rewards", "body.lua", _bodies(latest, self.batch)
        else:
            url, script, lines = self.server.url, "tell.lua", (f"{HOT}0/assignments/{one}/reward" for one in latest)
        seen, sent = wrk_listed(url, script, self.listed, lines, connections=self.connections, seconds=seconds)
        del self._untold[-sent * (self.batch or 1) :]
        return _plain(seen, self.batch or 1)


class Bench:
    """All subjects running side by side; one of them loaded at a time."""

    def __init__(
        self, stack: ExitStack, folder: Path, postgres: Postgres | None = None, checkout: Path = subjects.HERE.parent
    ) -> None:
        self.stack, self.folder, self.checkout = stack, folder, checkout
        self.postgres: Postgres = postgres or stack.enter_context(subjects.cluster())
        self.seed = 0

    def service(
        self, *, embedded: bool = False, workers: int = 1, experiments: int = 1, arms: int = 10, expiry: object = None
    ) -> Server:
        """A service for the whole run."""
        on = None if embedded else self.postgres
        running = subjects.service(on, workers=workers, experiments=experiments, arms=arms, checkout=self.checkout, expiry=expiry)
        return self.stack.enter_context(running)

    def application(self, target: str) -> str:
        """A floor for the whole run."""
        return self.stack.enter_context(subjects.application(target))

    def fresh(self) -> str:
        """A prefix for idempotency keys that was never used."""
        self.seed += 1
        return f"{time.time_ns():x}-{self.seed}"

    def asks(self, server: Server, *, connections: int = 64, experiments: int = 1, batch: int = 0) -> Cell:
        """Asks with an idempotency key each."""

        def run(seconds: float) -> dict[str, float]:
            arguments = (str(experiments), HOT, self.fresh(), str(batch))
            return _plain(wrk(server.url, "ask.lua", *arguments, connections=connections, seconds=seconds), batch or 1)

        return run

    def tells(self, server: Server, *, connections: int = 64, batch: int = 0) -> Cell:
        """First rewards of assignments."""
        return Tells(server, self.folder / "tells", connections, batch)

    def loop(self, server: Server) -> Cell:
        """Every answered ask is told."""
        return lambda seconds: _plain(wrk(server.url, "loop.lua", f"{HOT}0", self.fresh(), connections=64, seconds=seconds))

    def looks(self, server: Server, *, unchanged: bool) -> Cell:
        """The recommendation, whole or 304."""
        path = f"{HOT}0/recommendation"

        def run(seconds: float) -> dict[str, float]:
            with server.client() as client:
                etag = client.get(path).headers["etag"]
            headers = (f"If-None-Match: {etag}",) if unchanged else ()
            return _plain(wrk(f"{server.url}{path}", None, connections=64, seconds=seconds, headers=headers))

        return run

    def naive_asks(self, address: str, experiments: int = 1) -> Cell:
        """Asks of the naive design."""
        return lambda seconds: _plain(wrk(address, "ask_naive.lua", str(experiments), connections=64, seconds=seconds))

    def naive_tells(self, address: str) -> Cell:
        """Tells of the naive design."""

        def run(seconds: float) -> dict[str, float]:
            rows = whole_seconds(seconds) * NAIVE_TELLS
            drawn = f"SELECT gen_random_uuid(), 1, i % 10 FROM generate_series(1, {rows}) i"
            insert = f"INSERT INTO assignments(id, experiment_id, arm) {drawn} RETURNING id"
            lines = (f"/experiments/1/assignments/{one}/reward" for one in self.postgres.sql(insert, "naive").split())
            return _plain(wrk_listed(address, "tell.lua", self.folder / "naive", lines, connections=64, seconds=seconds)[0])

        return run

    def floor(self, url: str, path: str = f"{HOT}0/assignments") -> Cell:
        """The same asks to a route that does less."""
        script = "ask.lua" if path.endswith("assignments") else None
        address = url if script else f"{url}{path}"
        return lambda seconds: _plain(wrk(address, script, "1", HOT, self.fresh(), connections=64, seconds=seconds))

    def transaction(self, script: str, clients: int = 64, experiments: int = 1) -> Cell:
        """A transaction by pgbench in the naive design's database."""
        return lambda seconds: _plain(
            pgbench(
                self.postgres.binaries,
                self.postgres.folder,
                "naive",
                subjects.FIXED / script,
                clients=clients,
                seconds=seconds,
                experiments=experiments,
            )
        )

    def clients(self, server: Server) -> Cell:
        """Fairness between 64 clients of our own."""
        path = f"{HOT}0/assignments"
        return lambda seconds: asdict(fairness(server.port, path, clients=64, seconds=seconds, seed=self.fresh()))


def _bodies(ids: list[str], batch: int) -> Iterator[str]:
    for start in range(0, len(ids), batch):
        yield json.dumps({"rewards": [{"assignment": one, "reward": 1} for one in ids[start : start + batch]]})


def _plain(seen: Seen, items: int = 1) -> dict[str, float]:
    return {**asdict(seen), "items_per_second": seen.per_second * items}


def headline(bench: Bench) -> dict[str, Cell]:
    """The cells that the targets are about."""
    one, two = bench.service(), bench.service(workers=2)
    many = bench.service(experiments=100)
    expiring = bench.service(expiry=NUMERIC)
    large, large_expiring = bench.service(arms=10_000), bench.service(arms=10_000, expiry=NUMERIC)
    sqlite = bench.service(embedded=True)
    naive = bench.stack.enter_context(subjects.naive(bench.postgres))
    framework = bench.application("benchmarks.floors:framework")
    return {
        "bare ASGI": bench.floor(bench.application("benchmarks.floors:bare")),
        "raw route": bench.floor(bench.application("benchmarks.floors:raw")),
        "FastAPI route": bench.floor(framework),
        "empty FastAPI route": bench.floor(framework, "/empty"),
        "pgbench": bench.transaction("ask.sql"),
        "pgbench, 100 experiments": bench.transaction("ask.sql", experiments=100),
        "naive ask": bench.naive_asks(naive),
        "naive ask, 100 experiments": bench.naive_asks(naive, 100),
        "naive tell": bench.naive_tells(naive),
        "ask": bench.asks(one),
        "ask, 100 experiments": bench.asks(many, experiments=100),
        "ask, 2 workers": bench.asks(two),
        "ask, SQLite": bench.asks(sqlite),
        "ask, numeric expiry": bench.asks(expiring),
        "ask, 10,000 arms": bench.asks(large),
        "ask, numeric expiry, 10,000 arms": bench.asks(large_expiring),
        "tell": bench.tells(one),
        "loop": bench.loop(one),
        "ask, 1 connection": bench.asks(one, connections=1),
        "one durable insert": bench.transaction("insert.sql", clients=1),
        "batch ask of 1,000": bench.asks(one, connections=4, batch=1_000),
        "batch tell of 1,000": bench.tells(one, connections=4, batch=1_000),
        "recommendation": bench.looks(many, unchanged=False),
        "304": bench.looks(many, unchanged=True),
        "64 clients, 2 workers": bench.clients(two),
    }


def matrix(bench: Bench) -> dict[str, Cell]:
    """Everything: both databases, one and two workers, one and a hundred experiments, 1 to 256 connections."""
    cells = headline(bench)
    for name, embedded in (("PostgreSQL", False), ("SQLite", True)):
        for workers in (1, 2):
            for experiments in (1, 100):
                server = bench.service(embedded=embedded, workers=workers, experiments=experiments)
                where = f"{name}, {workers} worker(s), {experiments} experiment(s)"
                for connections in (1, 16, 64, 256):
                    cells[f"ask: {where}, {connections} connection(s)"] = bench.asks(
                        server, connections=connections, experiments=experiments
                    )
                cells[f"tell: {where}"] = bench.tells(server)
                cells[f"loop: {where}"] = bench.loop(server)
                cells[f"recommendation: {where}"] = bench.looks(server, unchanged=False)
                cells[f"304: {where}"] = bench.looks(server, unchanged=True)
    return cells


def measure(cells: dict[str, Cell], seconds: float, repetitions: int) -> dict[str, list[dict[str, float]]]:
    """Alternate over the cells; nothing else runs while one is measured."""
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in cells}
    for repetition in range(repetitions):
        for name, cell in cells.items():
            seen = cell(seconds)
            measured[name].append(seen)
            print(
                f"{repetition + 1}/{repetitions} {name:58s} {seen['per_second']:10,.0f}/s  p99 {seen['p99_ms']:8.2f} ms",
                flush=True,
            )
    return measured


def spread(values: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):,.3g} [{min(values):,.3g}, {max(values):,.3g}]"


def report(measured: dict[str, list[dict[str, float]]]) -> str:
    """The table of ratios and targets, as Markdown."""
    lines = ["| what | ratio: median [range] | wanted | |", "|---|---|---|---|"]

    def add(what: str, values: list[float], wanted: str, *, met: bool | None) -> None:
        verdict = "" if met is None else ("met" if met else "**missed**")
        lines.append(f"| {what} | {spread(values)} | {wanted} | {verdict} |")

    for what, above, below, wanted in RATIOS:
        pairs = zip(measured[above], measured[below], strict=True)
        values = [one["per_second"] / other["per_second"] for one, other in pairs]
        met = None if wanted is None else statistics.median(values) >= wanted
        add(what, values, "reported" if wanted is None else f"at least {wanted:g}", met=met)
    alone = [
        one["p50_ms"] / other["p50_ms"]
        for one, other in zip(measured["ask, 1 connection"], measured["one durable insert"], strict=True)
    ]
    add("latency of a lone ask against one durable insert", alone, "at most 2.5", met=statistics.median(alone) <= 2.5)  # noqa: PLR2004
    crowd = measured["64 clients, 2 workers"]
    tail = [one["p99_ms"] / one["p50_ms"] for one in crowd]
    add("p99 over p50, 64 clients, 2 workers", tail, "at most 5", met=statistics.median(tail) <= 5)  # noqa: PLR2004
    slowest = [one["slowest_share"] for one in crowd]
    add("slowest of 64 clients over the mean", slowest, "at least 0.5", met=statistics.median(slowest) >= 0.5)  # noqa: PLR2004
    for name, wanted in (("batch ask of 1,000", 40_000), ("batch tell of 1,000", 30_000)):
        items = [one["items_per_second"] for one in measured[name]]
        add(f"{name}: items per second (absolute)", items, f"at least {wanted:,}", met=statistics.median(items) >= wanted)
    lines += ["", "| cell | requests/s: median [range] | p50 ms | p99 ms | refused |", "|---|---|---|---|---|"]
    for name, runs in measured.items():
        rate, p50, p99 = (spread([run[field] for run in runs]) for field in ("per_second", "p50_ms", "p99_ms"))
        lines.append(f"| {name} | {rate} | {p50} | {p99} | {int(sum(run.get('refused', 0) for run in runs))} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the whole matrix")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repetitions", type=int, default=3)
    chosen = parser.parse_args()
    name = "hot_path_full" if chosen.full else "hot_path"
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bench = Bench(stack, Path(folder))
        cells = (matrix if chosen.full else headline)(bench)
        began = os.getloadavg()[0]
        measured = measure(cells, chosen.seconds, chosen.repetitions)
    table = report(measured)
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load_before": began}
    kept = {"seconds": chosen.seconds, "repetitions": chosen.repetitions, "machine": machine, "measured": measured}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text(f"{table}\n")
    draw(measured, RESULTS / f"{name}.svg")
    print(table)


if __name__ == "__main__":
    main()
