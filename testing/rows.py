"""A service's database, read past the service: what is really stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Self

from sqlalchemy import text

from service.storage.database import Database
from service.storage.tables import metadata

# What workers write of themselves, a while after the request that led to it.
_OF_WORKERS = {"webhook_cursors"}


class Rows:
    """One connection pool and one event loop of its own."""

    def __init__(self, database_url: str) -> None:
        self._runner = asyncio.Runner()
        self._database = Database(database_url, pool_size=1)

    def query(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - any parameter
        """All rows of a statement."""

        async def read() -> list[tuple[Any, ...]]:
            async with self._database.reading() as connection:
                return [tuple(row) for row in await connection.execute(text(statement), values)]

        return self._runner.run(read())

    def fingerprint(self) -> dict[str, int]:
        """How many rows each table has, and the sum of all versions: every write moves one of these."""
        tables = sorted(metadata.tables.keys() - _OF_WORKERS)
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        found = self.query(f"SELECT {counts}, (SELECT coalesce(sum(version), 0) FROM experiments)")[0]
        return dict(zip([*tables, "version"], map(int, found), strict=True))

    def assignments_of(self, key: str) -> list[tuple[int, int, str, float | None]]:
        """(draw, arm, status, reward) of every assignment of an experiment, in draw order."""
        found = self.query(
            "SELECT a.draw, a.arm, a.status, a.reward FROM assignments a JOIN experiments e ON e.id = a.experiment_id"
            " WHERE e.key = :key ORDER BY a.draw",
            key=key,
        )
        return [(draw, arm, status, reward) for draw, arm, status, reward in found]

    def arms_of(self, key: str) -> list[tuple[int, int, int, str]]:
        """(position, pending, observations, exact sum) of every arm of an experiment, its uncounted draws included."""
        (uncounted,) = self.query("SELECT uncounted FROM experiments WHERE key = :key", key=key)[0]
        lately = Counter(map(int, filter(None, uncounted.split(","))))
        found = self.query(
            "SELECT a.position, a.pending, a.observations, a.reward_sum FROM arms a JOIN experiments e ON e.id = a.experiment_id"
            " WHERE e.key = :key ORDER BY a.position",
            key=key,
        )
        return [(position, pending + lately[position], observations, total) for position, pending, observations, total in found]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._database.close())
        self._runner.close()
