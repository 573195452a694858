"""What a service and its database need: processor time and memory for asks and tells, and room on the disk for a draw.

python -m benchmarks.sizing

Processor time is what the kernel counted for all processes of the service, and of PostgreSQL, while wrk asked them, divided by
what was answered: it does not depend on who else used the machine, as a rate would. Room is the database's own size, vacuumed,
after draws that name their units, and again after their rewards.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import subjects
from benchmarks.hot_path import HOT
from benchmarks.load import wrk
from testing.json_client import JsonClient, Reply
from testing.memory import processes_of
from testing.postgres import Postgres
from testing.server import Server

RESULTS = Path(__file__).parent / "results/sizing.json"
_TICKS = os.sysconf("SC_CLK_TCK")
_BATCH = 1_000
_USED_BYTES = """SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""


@dataclass(slots=True)
class Spent:
    """Processor seconds of the service and of its database."""

    service: float = 0.0
    database: float = 0.0


def _seconds_of(pids: list[int]) -> float:
    """Processor time that these processes have had, with that of their children that have ended."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15]))
    return total / _TICKS


def _database_pids(postgres: Postgres | None) -> list[int]:
    """PostgreSQL's processes; SQLite is inside the service."""
    return [] if postgres is None else processes_of(int((postgres.data / "postmaster.pid").read_text().split()[0]))


@contextmanager
def _metered(server: Server, postgres: Postgres | None) -> Iterator[Spent]:
    spent = Spent()
    service, database = processes_of(server.process.pid), _database_pids(postgres)
    before = _seconds_of(service), _seconds_of(database)
    yield spent
    spent.service, spent.database = _seconds_of(service) - before[0], _seconds_of(database) - before[1]


def _resident_megabytes(server: Server) -> float:
    lines = [Path(f"/proc/{pid}/status").read_text() for pid in processes_of(server.process.pid)]
    return sum(int(text.split("VmRSS:")[1].split()[0]) for text in lines if "VmRSS:" in text) / 1024


def traffic(server: Server, postgres: Postgres | None, *, connections: int, seconds: float, repetitions: int) -> dict[str, Any]:
    """Cores that a thousand asks a second take, of the service and of the database, and the memory afterwards."""
    rows = []
    for repetition in range(repetitions):
        with _metered(server, postgres) as spent:
            seen = wrk(server.url, "ask.lua", "1", HOT, f"size-{time.time_ns():x}", connections=connections, seconds=seconds)
        thousands = (seen.requests - seen.refused) / 1_000
        rows.append((spent.service / thousands, spent.database / thousands, seen.per_second))
        cores = f"{rows[-1][0]:.3f} and {rows[-1][1]:.3f} cores for 1,000 a second"
        print(f"  {repetition + 1}/{repetitions} {seen.per_second:8,.0f} asks/s, {cores}", flush=True)
    service, database, rate = ([row[place] for row in rows] for place in range(3))
    return {
        "connections": connections,
        "asks_per_second": [round(one) for one in rate],
        "service_cores_per_1000_asks_a_second": [round(one, 4) for one in service],
        "database_cores_per_1000_asks_a_second": [round(one, 4) for one in database],
        "median_service_cores": round(statistics.median(service), 3),
        "median_database_cores": round(statistics.median(database), 3),
        "resident_megabytes": round(_resident_megabytes(server), 1),
    }


def _stored_bytes(server: Server, postgres: Postgres | None) -> int:
    if postgres is not None:
        name = subjects.database_of(server)
        postgres.sql("VACUUM ANALYZE", name)
        return int(postgres.sql("SELECT pg_database_size(current_database())", name))
    with closing(sqlite3.connect(server.database_url.removeprefix("sqlite:///"))) as rows:
        (size,) = rows.execute(_USED_BYTES).fetchone()
    return int(size)


def _done(reply: Reply) -> Any:  # noqa: ANN401 - any JSON
    """What was answered, if it was a success in all its parts."""
    if reply.status not in {200, 201} or any(one["status"] != "recorded" for one in reply.body.get("results", ())):
        raise RuntimeError(f"{reply.status}: {str(reply.body)[:500]}")
    return reply.body


def room(server: Server, postgres: Postgres | None, draws: int) -> dict[str, Any]:
    """Bytes that a draw takes, and that its reward adds."""
    with JsonClient(server.url) as wire:
        wire.create("stored", arms=[{"key": f"a{arm}"} for arm in range(10)])
        empty = _stored_bytes(server, postgres)
        ids = []
        for start in range(0, draws, _BATCH):
            asked = {"units": [f"visitor-{start + number:09}" for number in range(_BATCH)]}
            ids += [
                one["id"] for one in _done(wire.send("POST", "/v1/experiments/stored/assignments/batch", asked))["assignments"]
            ]
        before = _stored_bytes(server, postgres)
        for start in range(0, draws, _BATCH):
            told = [{"assignment": one, "reward": int(place % 3 == 0)} for place, one in enumerate(ids[start : start + _BATCH])]
            _done(wire.send("POST", "/v1/experiments/stored/rewards", {"rewards": told}))
        after = _stored_bytes(server, postgres)
    return {
        "draws": draws,
        "bytes_per_draw": round((before - empty) / draws),
        "bytes_per_draw_with_its_reward": round((after - empty) / draws),
    }


def measure(seconds: float, repetitions: int, draws: int) -> dict[str, Any]:
    """Both databases, one worker, few and many connections."""
    kept: dict[str, Any] = {"seconds": seconds, "cores": os.cpu_count()}
    with subjects.cluster() as postgres:
        for name, database in (("postgresql", postgres), ("sqlite", None)):
            kept[name] = {}
            for connections in (64, 4):
                print(f"{name}, {connections} connections")
                with subjects.service(database) as server:
                    found = traffic(server, database, connections=connections, seconds=seconds, repetitions=repetitions)
                    kept[name][f"{connections}_connections"] = found
            with subjects.service(database) as server:
                kept[name]["room"] = room(server, database, draws)
                print(f"  {kept[name]['room']}")
    return kept


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--draws", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    kept = measure(chosen.seconds, chosen.repetitions, chosen.draws)
    chosen.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
