"""The clock that all workers share: leases of one must mean the same to another, on whatever host."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_NOW = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")


async def database_now(connection: AsyncConnection) -> int:
    """Microseconds since 1970 by PostgreSQL's clock. A SQLite file is on one host, whose clock it is."""
    if connection.dialect.name == "sqlite":
        return time.time_ns() // 1_000
    now: int = (await connection.execute(_NOW)).scalar_one()
    return now
