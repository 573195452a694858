"""Which driver writes a group of draws most cheaply: asyncpg, psycopg 3 or SQLAlchemy Core, same rows, same durable database.

    python -m benchmarks.drivers

Alternates over the drivers; a group is 64 draws in one transaction. Time of this process per draw is what a worker pays; the wall
time holds the database's part, too.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import psycopg
from psycopg.types.composite import CompositeInfo, register_composite
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks import subjects
from service.storage.groups import writes
from service.storage.groups.statements import one_statement
from service.storage.tables import assignments, events
from testing.databases import migrate_now
from testing.postgres import Postgres

GROUP = 64
GROUPS = 40
REPETITIONS = 7
RESULT = Path(__file__).parent / "results" / "drivers.json"
Row = tuple[object, ...]
WriteGroup = Callable[[list[Row]], Awaitable[None]]
_NAMES = list(assignments.columns.keys())
_DRAW = one_statement((writes.DRAW,))


def rows(first: int) -> list[Row]:
    """So many draws."""
    return [
        (
            1,
            draw,
            1 << 60,
            draw,
            draw % 10,
            f"user-{draw}",
            "track",
            1,
            10**15,
            None,
            None,
            "pending",
            None,
            True,
            None,
            None,
            f"key-{draw}",
        )
        for draw in range(first, first + GROUP)
    ]


async def with_asyncpg(url: str) -> WriteGroup:
    """An array of rows, one statement for both tables."""
    connection = await asyncpg.connect(url)

    async def write(drawn: list[Row]) -> None:
        await connection.fetch(_DRAW, drawn)

    return write


async def with_psycopg(url: str) -> WriteGroup:
    """The same statement; psycopg sends arrays of rows, too."""
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    info = await CompositeInfo.fetch(connection, "assignments_row")
    if info is None:
        raise RuntimeError("The database was not migrated.")
    register_composite(info, connection)
    if info.python_type is None:
        raise RuntimeError("psycopg made no type of the rows.")
    statement, row_type = _DRAW.replace("$1::", "%s::"), info.python_type

    async def write(drawn: list[Row]) -> None:
        await connection.execute(statement, [[row_type(*row) for row in drawn]], prepare=True)

    return write


async def with_sqlalchemy(url: str) -> WriteGroup:
    """Core inserts of many rows, one per table, over asyncpg."""
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))

    async def write(drawn: list[Row]) -> None:
        named = [dict(zip(_NAMES, row, strict=True)) for row in drawn]
        told = [
            {
                "experiment_id": row["experiment_id"],
                "sequence": row["sequence"],
                "kind": "draw",
                "at": row["created_at"],
                "arm": row["arm"],
                "draw": row["draw"],
                "epoch": row["epoch"],
                "reason": row["reason"],
                "status_after": "pending",
                "closed_after": row["closed"],
            }
            for row in named
        ]
        async with engine.begin() as connection:
            await connection.execute(insert(events), told)
            await connection.execute(insert(assignments), named)

    return write


async def measure(postgres: Postgres) -> dict[str, list[dict[str, float]]]:
    """Microseconds per draw: of this process, and by the wall clock."""
    writers: dict[str, WriteGroup] = {}
    makers = {"asyncpg": with_asyncpg, "psycopg": with_psycopg, "SQLAlchemy Core": with_sqlalchemy}
    for number, (name, make) in enumerate(makers.items()):
        writers[name] = await make(postgres.url(f"drivers_{number}"))
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in writers}
    for repetition in range(REPETITIONS):
        for name, write in writers.items():
            groups = [rows(1 + (repetition * GROUPS + group) * GROUP) for group in range(GROUPS)]
            cpu, wall = time.process_time(), time.perf_counter()
            for group in groups:
                await write(group)
            draws = GROUPS * GROUP / 1e6
            measured[name].append(
                {"cpu_us": (time.process_time() - cpu) / draws, "wall_us": (time.perf_counter() - wall) / draws}
            )
    return measured


def main() -> None:
    """Measure, print, keep."""
    with subjects.cluster() as postgres:
        for number in range(3):
            postgres.sql(f"CREATE DATABASE drivers_{number}")
            migrate_now(postgres.url(f"drivers_{number}"))
        measured = asyncio.run(measure(postgres))
    for name, runs in measured.items():
        cpu, wall = ([run[field] for run in runs] for field in ("cpu_us", "wall_us"))
        print(
            f"{name:16s} cpu {statistics.median(cpu):6.1f} us/draw [{min(cpu):.1f}, {max(cpu):.1f}]   "
            f"wall {statistics.median(wall):6.1f} us/draw [{min(wall):.1f}, {max(wall):.1f}]"
        )
    RESULT.write_text(json.dumps({"group": GROUP, "groups": GROUPS, "measured": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
