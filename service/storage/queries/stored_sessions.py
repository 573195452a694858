"""Sessions of the dashboard: stored, ended, swept, and what changed since a worker last looked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select, update

from service.domain.browser_sessions import BrowserSession
from service.storage.access_tables import session_changes, sessions
from service.storage.queries.change_follower import ChangeFollower, next_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection


async def insert_session(connection: AsyncConnection, session: BrowserSession) -> None:
    """Store a session, as a change that other workers will read."""
    await connection.execute(insert(sessions).values(**_values(session), change=await next_change(connection, session_changes)))


async def end(connection: AsyncConnection, digest: bytes, at: int) -> None:
    """It is over. Its row stays until its time would have been, so that every worker hears of it."""
    ended = update(sessions).where(sessions.c.digest == digest, sessions.c.ended_at.is_(None))
    await connection.execute(ended.values(ended_at=at, change=await next_change(connection, session_changes)))


async def oldest_beyond(connection: AsyncConnection, caller: str, limit: int, now: int) -> bytes | None:
    """The oldest good session of a caller who has at least so many."""
    good = (sessions.c.caller == caller, sessions.c.ended_at.is_(None), sessions.c.expires_at > now)
    count: int = (await connection.execute(select(func.count()).select_from(sessions).where(*good))).scalar_one()
    if count < limit:
        return None
    oldest = select(sessions.c.digest).where(*good).order_by(sessions.c.created_at, sessions.c.change).limit(1)
    return bytes((await connection.execute(oldest)).scalar_one())


async def changed_since(connection: AsyncConnection, change: int, limit: int) -> Sequence[tuple[int, BrowserSession]]:
    """Sessions that changed after this change, with the number of their last one, in its order."""
    wanted = select(sessions).where(sessions.c.change > change).order_by(sessions.c.change).limit(limit)
    return [(row["change"], _session_from(row)) for row in (await connection.execute(wanted)).mappings()]


def follower() -> ChangeFollower[BrowserSession]:
    """For a worker that knows all sessions."""
    return ChangeFollower(session_changes, changed_since)


async def forget(connection: AsyncConnection, before: int) -> None:
    """Remove those whose time was over before this."""
    await connection.execute(delete(sessions).where(sessions.c.expires_at < before))


def _values(session: BrowserSession) -> dict[str, Any]:
    values = {name: getattr(session, name) for name in BrowserSession.__slots__}
    return values | {"scopes": None if session.scopes is None else json.dumps(sorted(session.scopes))}


def _session_from(row: RowMapping) -> BrowserSession:
    values = {name: row[name] for name in BrowserSession.__slots__}
    scopes = None if row["scopes"] is None else frozenset(json.loads(row["scopes"]))
    return BrowserSession(**(values | {"digest": bytes(row["digest"]), "basis": bytes(row["basis"]), "scopes": scopes}))
