"""Queues of messages: taken by one worker at a time, first message first, and let go of with what became of it.

Whoever takes a queue moves `due_at` to the end of a lease and signs with a claim. It is theirs until then: to others nothing is
due. A worker that is killed lets the lease run out, and the next one begins with the same message. Once its lease is over, what a
worker says of a failure does not count any more; that it has delivered is true whenever it says so.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, select, text, update

from service.storage.database_time import database_now
from service.storage.queries.stored_deliveries import delivery_from
from service.storage.queries.stored_webhooks import webhook_by_id
from service.storage.webhook_tables import WAITING_ONLY, webhook_deliveries, webhook_queues

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain.webhooks import Delivery, Webhook


class Queue(NamedTuple):
    """Which queue: what an endpoint is told of one experiment."""

    webhook: str
    subject: int


class Attempt(NamedTuple):
    """A message to be sent now, where to, and by whose claim."""

    queue: Queue
    claim: str
    webhook: Webhook
    delivery: Delivery


class AttemptResult(NamedTuple):
    """What became of an attempt."""

    delivered: bool
    response_status: int | None = None
    error: str | None = None


async def due_queues(connection: AsyncConnection, webhook_ids: Collection[str], limit: int) -> list[Queue]:
    """The queues of these webhooks that are due, longest first."""
    now = await database_now(connection)
    wanted = select(webhook_queues.c.webhook, webhook_queues.c.subject).where(
        webhook_queues.c.due_at <= now, webhook_queues.c.webhook.in_(webhook_ids)
    )
    return [Queue(*row) for row in await connection.execute(wanted.order_by(webhook_queues.c.due_at).limit(limit))]


async def take(connection: AsyncConnection, queue: Queue, lease: int) -> Attempt | None:
    """The first message of a queue that is due, for as many microseconds; None if there is nothing for us to do."""
    webhook = await webhook_by_id(connection, queue.webhook)
    now = await database_now(connection)
    due = select(webhook_queues).where(*_named(queue), webhook_queues.c.due_at <= now)
    if webhook is None or not webhook.enabled:
        return None
    if (await connection.execute(due.with_for_update(skip_locked=True))).first() is None:
        return None
    return await _begin(connection, queue, secrets.token_hex(8), webhook, now + lease)


async def finish(connection: AsyncConnection, attempt: Attempt, result: AttemptResult, pause: int, lease: int) -> Attempt | None:
    """Write down what became of an attempt; the queue's next message if it was delivered, else none until a pause is over."""
    queue = attempt.queue
    webhook = await webhook_by_id(connection, queue.webhook)
    claimed = select(webhook_queues).where(*_named(queue), webhook_queues.c.claim == attempt.claim).with_for_update()
    ours = (await connection.execute(claimed)).first() is not None
    now = await database_now(connection)
    if ours or result.delivered:
        await _write_result(connection, attempt.delivery, result, now, now + pause)
    if not ours:
        return None
    if not result.delivered or webhook is None or not webhook.enabled:
        await let_go(connection, attempt, now if result.delivered else now + pause)
        return None
    return await _begin(connection, queue, attempt.claim, webhook, now + lease)


async def let_go(connection: AsyncConnection, attempt: Attempt, due_at: int) -> None:
    """The queue is anybody's from this time on."""
    ours = *_named(attempt.queue), webhook_queues.c.claim == attempt.claim
    await connection.execute(update(webhook_queues).where(*ours).values(due_at=due_at, claim=None))


async def _begin(connection: AsyncConnection, queue: Queue, claim: str, webhook: Webhook, until: int) -> Attempt | None:
    """Take the next message of a queue whose row is locked; without one the queue ends."""
    waiting = select(webhook_deliveries).where(
        webhook_deliveries.c.webhook == queue.webhook, webhook_deliveries.c.subject == queue.subject, text(WAITING_ONLY)
    )
    row = (await connection.execute(waiting.order_by(webhook_deliveries.c.sequence).limit(1))).mappings().first()
    if row is None:
        await connection.execute(delete(webhook_queues).where(*_named(queue)))
        return None
    await connection.execute(update(webhook_queues).where(*_named(queue)).values(due_at=until, claim=claim))
    begun = update(webhook_deliveries).where(webhook_deliveries.c.number == row["number"])
    now = await database_now(connection)
    await connection.execute(begun.values(attempts=row["attempts"] + 1, attempted_at=now, next_attempt_at=None))
    return Attempt(queue, claim, webhook, replace(delivery_from(row), attempts=row["attempts"] + 1))


async def _write_result(connection: AsyncConnection, delivery: Delivery, result: AttemptResult, now: int, retry_at: int) -> None:
    seen = {"response_status": result.response_status, "error": result.error}
    written = update(webhook_deliveries).where(webhook_deliveries.c.number == delivery.number, text(WAITING_ONLY))
    if result.delivered:
        await connection.execute(written.values(status="delivered", delivered_at=now, **seen))
    else:
        await connection.execute(written.values(next_attempt_at=retry_at, **seen))


def _named(queue: Queue) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return webhook_queues.c.webhook == queue.webhook, webhook_queues.c.subject == queue.subject
