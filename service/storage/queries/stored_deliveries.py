"""Messages to webhooks: written down, listed, counted, and removed when they are old."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, func, insert, select, text, update

from service.domain.limits import MOST_VISITED_DELIVERIES
from service.domain.webhooks import Delivery, Waiting
from service.storage.webhook_tables import WAITING_ONLY, webhook_deliveries, webhook_queues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain.webhooks import DeliveryStatus

# Removed in one transaction, so that it stays short.
_REMOVED_AT_ONCE = 500
# The row of a queue is locked, whether it was there or not: whoever ends a queue at this moment is waited for.
_OPENED = """INSERT INTO webhook_queues (webhook, subject, due_at) VALUES (:webhook, :subject, :due_at)
ON CONFLICT (webhook, subject) DO UPDATE SET due_at = """
_OPEN = text(f"{_OPENED} webhook_queues.due_at")
_HURRY = text(f"{_OPENED} CASE WHEN webhook_queues.claim IS NULL THEN excluded.due_at ELSE webhook_queues.due_at END")


async def insert_delivery(connection: AsyncConnection, delivery: Delivery, subject: int | None) -> None:
    """One more message; if it is about an experiment and waits, in its queue."""
    if subject is not None:
        await connection.execute(_OPEN, {"webhook": delivery.webhook, "subject": subject, "due_at": delivery.created_at})
    values = {name: getattr(delivery, name) for name in Delivery.__slots__ if name != "number"}
    values |= {"message": json.dumps(delivery.message, ensure_ascii=False), "subject": subject}
    await connection.execute(insert(webhook_deliveries).values(values))


async def delivery_by_id(connection: AsyncConnection, webhook_id: str, delivery_id: str) -> Delivery | None:
    """One message of a webhook."""
    wanted = select(webhook_deliveries).where(webhook_deliveries.c.id == delivery_id, webhook_deliveries.c.webhook == webhook_id)
    row = (await connection.execute(wanted)).mappings().first()
    return delivery_from(row) if row else None


async def send_again(connection: AsyncConnection, delivery_id: str, now: int) -> None:
    """It waits as if it had never been tried, and its queue is due, unless it is being sent just now."""
    named = webhook_deliveries.c.id == delivery_id
    place = (await connection.execute(select(webhook_deliveries.c.webhook, webhook_deliveries.c.subject).where(named))).one()
    await connection.execute(_HURRY, {"webhook": place.webhook, "subject": place.subject, "due_at": now})
    again = update(webhook_deliveries).where(named)
    await connection.execute(again.values(status="waiting", attempts=0, next_attempt_at=None, delivered_at=None))


async def try_all_again(connection: AsyncConnection, webhook_id: str, now: int) -> None:
    """All that waits for a webhook is due, but for what is being sent just now, and counts as never tried."""
    idle = webhook_queues.c.webhook == webhook_id, webhook_queues.c.claim.is_(None)
    await connection.execute(update(webhook_queues).where(*idle).values(due_at=now))
    waiting = update(webhook_deliveries).where(webhook_deliveries.c.webhook == webhook_id, text(WAITING_ONLY))
    await connection.execute(waiting.values(attempts=0, next_attempt_at=None))


class FoundDeliveries(NamedTuple):
    """Messages; and, where the search stopped before the page was full, the number to go on below."""

    deliveries: list[Delivery]
    go_on_below: int | None


async def page_of_deliveries(
    connection: AsyncConnection, webhook_id: str, status: DeliveryStatus | None, *, before: int | None, limit: int
) -> FoundDeliveries:
    """Messages of a webhook, newest first; those of a status are looked for among a bounded number."""
    number, last = webhook_deliveries.c.number, None
    inside = [webhook_deliveries.c.webhook == webhook_id, *([] if before is None else [number < before])]
    if status is not None:
        bound = select(number).where(*inside).order_by(number.desc()).offset(MOST_VISITED_DELIVERIES - 1).limit(1)
        last = (await connection.execute(bound)).scalar_one_or_none()
        inside += [webhook_deliveries.c.status == status, *([] if last is None else [number >= last])]
    found = await connection.execute(select(webhook_deliveries).where(*inside).order_by(number.desc()).limit(limit))
    deliveries = [delivery_from(row) for row in found.mappings()]
    return FoundDeliveries(deliveries, last if len(deliveries) < limit else None)


async def waiting_of(connection: AsyncConnection, webhook_ids: Sequence[str] | None = None) -> dict[str, Waiting]:
    """What waits for each of these webhooks, or for all of them."""
    webhook, count, oldest = webhook_deliveries.c.webhook, func.count(), func.min(webhook_deliveries.c.created_at)
    wanted = select(webhook, count, oldest).where(text(WAITING_ONLY)).group_by(webhook)
    found = await connection.execute(wanted if webhook_ids is None else wanted.where(webhook.in_(webhook_ids)))
    return {one: Waiting(messages, oldest_at) for one, messages, oldest_at in found}


async def remove_old(connection: AsyncConnection, older_than: int) -> bool:
    """Some messages from before this time go, delivered or not; whether there may be more of them."""
    number = webhook_deliveries.c.number
    old = select(number).where(webhook_deliveries.c.created_at < older_than).order_by(webhook_deliveries.c.created_at)
    numbers = (await connection.execute(old.limit(_REMOVED_AT_ONCE))).scalars().all()
    await connection.execute(delete(webhook_deliveries).where(number.in_(numbers)))
    return len(numbers) == _REMOVED_AT_ONCE


def delivery_from(row: RowMapping) -> Delivery:
    """A row of messages."""
    values: dict[str, Any] = {name: row[name] for name in Delivery.__slots__}
    return Delivery(**(values | {"message": json.loads(row["message"])}))
