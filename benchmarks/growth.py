"""Does an ask cost more when millions of assignments are stored? And does a worker's memory grow?

python -m benchmarks.growth rows      asks beside 10, 1,000,000 and 5,000,000 stored assignments, alternating
python -m benchmarks.growth memory    1,000 experiments of 50 arms under load for ten minutes
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks import subjects
from benchmarks.hot_path import HOT
from benchmarks.load import wrk
from testing.postgres import Postgres
from testing.server import Server

RESULTS = Path(__file__).parent / "results"
SIZES = (10, 1_000_000, 5_000_000)


def load_rows(postgres: Postgres, database: str, rows: int) -> None:
    """Store so many rewarded assignments with their events in bulk, as if they had been drawn one by one."""
    drawn = f"generate_series(1, {rows}) AS g"
    base = postgres.sql("SELECT version FROM experiments WHERE id = 1", database)
    postgres.sql(
        "INSERT INTO assignments(experiment_id, draw, token, sequence, arm, unit, reason, epoch, created_at, status, reward,"
        " closed, rewarded_at, idempotency_key)"
        f" SELECT 1, g, g, {base} + g, g % 10, 'user-' || g % 5000, 'track', 1, g, 'rewarded', 1, true, g, md5(g::text)"
        f" FROM {drawn}",
        database,
    )
    postgres.sql(
        "INSERT INTO events(experiment_id, sequence, kind, at, arm, draw, epoch, reason, status_after, closed_after)"
        f" SELECT 1, {base} + g, 'draw', g, g % 10, g, 1, 'track', 'pending', true FROM {drawn}",
        database,
    )
    postgres.sql(f"UPDATE experiments SET draws = {rows}, version = version + {rows} WHERE id = 1", database)
    postgres.sql("VACUUM ANALYZE assignments, events", database)
    postgres.sql("CHECKPOINT", database)


def rows(seconds: float, repetitions: int) -> dict[str, object]:
    """Rates at each size, alternating."""
    measured: dict[int, list[float]] = {size: [] for size in SIZES}
    with ExitStack() as stack:
        postgres = stack.enter_context(subjects.cluster())
        servers: dict[int, Server] = {}
        for size in SIZES:
            servers[size] = stack.enter_context(subjects.service(postgres))
            load_rows(postgres, subjects.database_of(servers[size]), size)
        for repetition in range(repetitions):
            for size, server in servers.items():
                arguments = ("1", HOT, f"grow-{time.time_ns():x}")
                seen = wrk(server.url, "ask.lua", *arguments, connections=64, seconds=seconds)
                measured[size].append(seen.per_second)
                print(
                    f"{repetition + 1}/{repetitions} {size:>9,} stored: {seen.per_second:8,.0f} asks/s, {seen.refused} refused",
                    flush=True,
                )
    smallest = statistics.median(measured[SIZES[0]])
    for size, rates in measured.items():
        ratio = smallest / statistics.median(rates)
        print(f"{size:>9,} stored: median {statistics.median(rates):,.0f}/s, cost {ratio:.3f} times that of {SIZES[0]}")
    return {"seconds": seconds, "asks_per_second": measured}


def memory(minutes: float) -> dict[str, object]:
    """Resident memory of the worker, once a slice."""
    sampled: list[float] = []
    with subjects.cluster() as postgres, subjects.service(postgres, experiments=1_000, arms=50) as server:
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            arguments = ("1000", HOT, f"mem-{time.time_ns():x}")
            seen = wrk(server.url, "ask.lua", *arguments, connections=64, seconds=15)
            status = Path(f"/proc/{server.process.pid}/status").read_text()
            resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
            sampled.append(resident)
            print(f"{resident:6.1f} MB resident, {seen.per_second:,.0f} asks/s, {seen.refused} refused", flush=True)
    return {"minutes": minutes, "resident_mb": sampled}


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("rows", "memory"))
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--minutes", type=float, default=10.0)
    chosen = parser.parse_args()
    kept = rows(chosen.seconds, chosen.repetitions) if chosen.what == "rows" else memory(chosen.minutes)
    (RESULTS / f"growth_{chosen.what}.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
