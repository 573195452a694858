"""Replies outside the engine: the first answers to what is created by itself, and forgetting those that are old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from service.errors import IdempotencyKeyReused
from service.storage import settings_rows
from service.storage.tables import replies

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import StoredReply


async def find_reply(connection: AsyncConnection, experiment_id: int, route: str, key: str) -> StoredReply | None:
    """The stored first answer to this key on a route of the experiment; 0 stands for routes outside experiments."""
    named = (replies.c.experiment_id == experiment_id) & (replies.c.route == route) & (replies.c.key == key)
    row = (await connection.execute(select(replies).where(named))).mappings().first()
    return settings_rows.reply_from(row) if row else None


async def insert_reply(connection: AsyncConnection, experiment_id: int, reply: StoredReply) -> None:
    """Keep a first answer."""
    row = dict(zip(replies.columns.keys(), settings_rows.reply_row(experiment_id, reply), strict=True))
    try:
        await connection.execute(insert(replies).values(row))
    except IntegrityError as taken:  # by a request for something else that ran at the same time
        raise IdempotencyKeyReused("This Idempotency-Key was used before with another body.") from taken


async def forget_replies(connection: AsyncConnection, older_than: int) -> None:
    """Drop stored answers that no retry will ask for any more."""
    await connection.execute(delete(replies).where(replies.c.created_at < older_than))
