"""Webhooks and their messages, for those who administer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from service.domain.webhooks import Waiting
from service.storage.queries import stored_deliveries, stored_webhooks

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.domain.webhooks import DeliveryStatus, Webhook
    from service.storage.queries.stored_deliveries import FoundDeliveries


class ListedWebhook(NamedTuple):
    """A webhook with its number in the list, and what waits for it."""

    number: int
    webhook: Webhook
    waiting: Waiting


async def page_of_webhooks(reader: Reader, before: int | None, limit: int) -> list[ListedWebhook]:
    """Webhooks, newest first."""
    async with reader.database.reading() as connection:
        found = await stored_webhooks.page_of_webhooks(connection, before=before, limit=limit)
        waiting = await stored_deliveries.waiting_of(connection, [webhook.id for _, webhook in found])
    return [ListedWebhook(number, webhook, waiting.get(webhook.id, Waiting())) for number, webhook in found]


async def webhook(reader: Reader, webhook_id: str) -> ListedWebhook:
    """One webhook."""
    async with reader.database.reading() as connection:
        found = await stored_webhooks.existing_webhook(connection, webhook_id)
        waiting = await stored_deliveries.waiting_of(connection, [webhook_id])
    return ListedWebhook(0, found, waiting.get(webhook_id, Waiting()))


async def page_of_deliveries(
    reader: Reader, webhook_id: str, status: DeliveryStatus | None, before: int | None, limit: int
) -> FoundDeliveries:
    """Messages of a webhook, newest first."""
    async with reader.database.reading() as connection:
        await stored_webhooks.existing_webhook(connection, webhook_id)
        return await stored_deliveries.page_of_deliveries(connection, webhook_id, status, before=before, limit=limit)
