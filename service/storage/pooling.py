"""Whether a pooler in transaction mode stands before PostgreSQL: what a session has prepared or set must stay there.

A pooler shows in that the process that serves is another than the one that was said to serve when the connection was made. It
gives transactions of one client to several processes, or transactions of several clients to one, where it pools transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from service.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.storage.database import Database

# Others may use the pooler, too, and be in between once; not every time.
_LOOKS = 5
_REFUSAL = (
    "A pooler in transaction mode stands before this PostgreSQL: what is prepared or set in a session would be gone in the next "
    "transaction. Let it pool sessions (pool_mode = session in PgBouncer), or connect past it."
)


async def refuse_pooled_transactions(database: Database) -> None:
    """Raise if sessions are not kept."""
    if database.is_sqlite:
        return
    one = await database.connect()
    try:
        if await _serving(one) == await _promised(one):
            return  # nobody stands in between
        other = await database.connect()
        try:
            if await _are_mixed(one, other):
                raise DatabaseUnavailable(_REFUSAL)
        finally:
            await other.close()
    finally:
        await one.close()


async def _are_mixed(one: AsyncConnection, other: AsyncConnection) -> bool:
    """Does a connection change its process, or get the one that another has?"""
    first = await _serving(one)
    for _ in range(_LOOKS):
        if await _serving(other) == first or await _serving(one) != first:
            return True
    return False


async def _serving(connection: AsyncConnection) -> int:
    """The process that serves a transaction of this connection."""
    served = int((await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one())
    await connection.rollback()
    return served


async def _promised(connection: AsyncConnection) -> int:
    """The process that was said to serve this connection."""
    driver_s: Any = (await connection.get_raw_connection()).driver_connection
    return int(driver_s.get_server_pid())
