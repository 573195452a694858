"""What a draw with its reward takes on the disk, table by table, on both databases.

    python -m benchmarks.storage [--draws N]

Three kinds of asks: with nothing, with a unit, with a unit and an idempotency key. Sizes are as traffic leaves them, indexes
included, and packed, which is what the rows themselves need. Writes benchmarks/results/storage.json.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

import numpy as np

from benchmarks.hot_path import RESULTS
from benchmarks.stored_draws import ENGINES, Place, place
from service.application.commands.ask import Ask
from service.application.commands.tell import RewardItem, TellMany
from service.engine.queue import Command
from testing.workers import Workers

Sizes = dict[str, tuple[float, float]]
"""Bytes of each table and of its indexes."""
_TABLES = ("assignments", "events", "arms", "experiments", "snapshots")
_TOGETHER = 500


def write(url: str, draws: int, kind: str) -> None:
    """Single asks in groups, as busy traffic makes them, and the rewards of each group."""
    workers, rng = Workers(url, count=1), np.random.default_rng(1)
    workers.create("one", [(f"a{number}", 0.0) for number in range(10)])
    for start in range(0, draws, _TOGETHER):
        asks: list[Command[object]] = []
        for number in range(start, start + _TOGETHER):
            unit = None if kind == "nothing" else f"user-{number:07d}"
            asks.append(Ask(unit, str(UUID(bytes=rng.bytes(16))) if kind == "a unit and a key" else None))
        answers = workers.submit_together("one", asks)
        workers.submit("one", TellMany([RewardItem(assignment=one.assignment.id, reward=1.0) for one in answers]))
    workers.close()


def sizes_of(where: Place, url: str, *, packed: bool) -> Sizes:
    """What is on the disk."""
    if where.postgres is None:
        return _sqlite_sizes(Path(url.removeprefix("sqlite:///")), packed=packed)
    database = url.partition("@/")[2].partition("?")[0]
    if packed:
        where.postgres.sql("VACUUM FULL", database)
    found = {}
    for table in _TABLES:
        said = where.postgres.sql(f"SELECT pg_table_size('{table}'), pg_indexes_size('{table}')", database)
        found[table] = tuple(map(float, said.split("|")))
    return found  # type: ignore[return-value] # two numbers each


def _sqlite_sizes(file: Path, *, packed: bool) -> Sizes:
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        if packed:
            opened.execute("VACUUM")
        found = {}
        for table in _TABLES:
            parts = "SELECT name FROM sqlite_schema WHERE tbl_name = ? AND type = ?"
            sizes = f"SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN ({parts})"
            found[table] = tuple(float(opened.execute(sizes, (table, kind)).fetchone()[0]) for kind in ("table", "index"))
    return found  # type: ignore[return-value] # two numbers each


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100_000)
    draws = parser.parse_args().draws
    kept: dict[str, dict[str, dict[str, float]]] = {}
    for engine in ENGINES:
        with place(engine) as where:
            for kind in ("nothing", "a unit", "a unit and a key"):
                url = where.new()
                before = sizes_of(where, url, packed=False)
                write(url, draws, kind)
                measured: dict[str, float] = {}
                for packed in (False, True):
                    after = sizes_of(where, url, packed=packed)
                    state = "packed" if packed else "as written"
                    for table in ("assignments", "events"):
                        for place_of, part in enumerate(("rows", "indexes")):
                            grown = (after[table][place_of] - before[table][place_of]) / draws
                            measured[f"{table}, {part}, {state}"] = round(grown, 1)
                    total = sum(sum(after[table]) - sum(before[table]) for table in _TABLES)
                    measured[f"all, {state}"] = round(total / draws, 1)
                kept.setdefault(engine, {})[kind] = measured
                written, packed_size = measured["all, as written"], measured["all, packed"]
                print(f"{engine:11s} {kind:17s} {written:6.0f} bytes, packed {packed_size:6.0f}", flush=True)
    (RESULTS / "storage.json").write_text(json.dumps({"draws": draws, "bytes_a_draw": kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
