"""Webhooks: stored, changed, and the number of the last change."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select, update

from service.domain.limits import WEBHOOK_ID_PATTERN
from service.domain.webhooks import SigningSecret, Webhook
from service.errors import WebhookNotFound
from service.storage.webhook_tables import webhook_changes, webhook_deliveries, webhook_queues, webhooks

if TYPE_CHECKING:
    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

_ID = re.compile(WEBHOOK_ID_PATTERN)


async def hold(connection: AsyncConnection) -> None:
    """Nobody else changes webhooks until this transaction ends, and other workers will look at them anew."""
    await connection.execute(update(webhook_changes).values(number=webhook_changes.c.number + 1))


async def last_change(connection: AsyncConnection) -> int:
    """The number of the last change; 0 if there never was a webhook."""
    number: int = (await connection.execute(select(webhook_changes.c.number))).scalar_one()
    return number


async def all_webhooks(connection: AsyncConnection, *, kept: bool = False) -> list[Webhook]:
    """All of them, oldest first; kept, they stay as they are until this transaction ends."""
    wanted = select(webhooks).order_by(webhooks.c.number)
    found = await connection.execute(wanted.with_for_update(read=True) if kept else wanted)
    return [_webhook_from(row) for row in found.mappings()]


async def page_of_webhooks(connection: AsyncConnection, *, before: int | None, limit: int) -> list[tuple[int, Webhook]]:
    """Webhooks with their numbers, newest first."""
    wanted = select(webhooks).order_by(webhooks.c.number.desc()).limit(limit)
    found = await connection.execute(wanted if before is None else wanted.where(webhooks.c.number < before))
    return [(row["number"], _webhook_from(row)) for row in found.mappings()]


async def webhook_by_id(connection: AsyncConnection, webhook_id: str, *, locked: bool = False) -> Webhook | None:
    """One webhook; locked, it stays as it is until this transaction ends."""
    wanted = select(webhooks).where(webhooks.c.id == webhook_id)
    row = (await connection.execute(wanted.with_for_update() if locked else wanted)).mappings().first()
    return _webhook_from(row) if row else None


async def existing_webhook(connection: AsyncConnection, webhook_id: str, *, locked: bool = False) -> Webhook:
    """The same, and it is there; what cannot be an id meets no database that could not even compare it."""
    found = await webhook_by_id(connection, webhook_id, locked=locked) if _ID.fullmatch(webhook_id) else None
    if found is None:
        raise WebhookNotFound(webhook_id)
    return found


async def number_of_webhooks(connection: AsyncConnection) -> int:
    """How many there are."""
    return (await connection.execute(select(func.count()).select_from(webhooks))).scalar_one()


async def insert_webhook(connection: AsyncConnection, webhook: Webhook) -> None:
    """One more webhook."""
    await connection.execute(insert(webhooks).values(_values(webhook)))


async def replace_webhook(connection: AsyncConnection, webhook: Webhook) -> None:
    """The webhook as it is from now on."""
    await connection.execute(update(webhooks).where(webhooks.c.id == webhook.id).values(_values(webhook)))


async def delete_webhook(connection: AsyncConnection, webhook_id: str) -> None:
    """It is gone, and all that it was told or still to be told."""
    await connection.execute(delete(webhook_queues).where(webhook_queues.c.webhook == webhook_id))
    await connection.execute(delete(webhook_deliveries).where(webhook_deliveries.c.webhook == webhook_id))
    await connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id))


def _values(webhook: Webhook) -> dict[str, Any]:
    values = {name: getattr(webhook, name) for name in Webhook.__slots__}
    lists = {name: None if values[name] is None else json.dumps(values[name]) for name in ("events", "experiments", "secrets")}
    return values | lists


def _webhook_from(row: RowMapping) -> Webhook:
    values = {name: row[name] for name in Webhook.__slots__}
    experiments = None if row["experiments"] is None else tuple(json.loads(row["experiments"]))
    secrets = tuple(SigningSecret(*one) for one in json.loads(row["secrets"]))
    return Webhook(**(values | {"events": tuple(json.loads(row["events"])), "experiments": experiments, "secrets": secrets}))
