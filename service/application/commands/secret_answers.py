"""Answers that hold a secret, once per idempotency key: what is kept of them is without it, so that it is nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from service.storage.queries import stored_replies

if TYPE_CHECKING:
    from service.application.commands.idempotency import Once, Rendered
    from service.storage.database import Connection

Made = TypeVar("Made")


async def first_answer(connection: Connection, once: Once[Made]) -> Rendered | None:
    """What the same request was answered before, without the secret."""
    stored = await stored_replies.find_reply(connection, 0, once.route, once.key) if once.key is not None else None
    return once.repeat(stored) if stored else None


async def answered(connection: Connection, once: Once[Made], made: Made, without_secret: Made, now: int) -> Rendered:
    """The answer with the secret; what is kept of it is without."""
    _, reply = once.answer(without_secret, now)
    if reply is not None:
        await stored_replies.insert_reply(connection, 0, reply)
    return replace(once, key=None).answer(made, now)[0]
