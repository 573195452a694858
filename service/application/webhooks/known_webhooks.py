"""Webhooks as this worker knows them: all of them, read again when the number of their last change has moved.

Where there are none, that number is all that a worker ever reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.domain.webhooks import WEBHOOK_EVENTS
from service.storage.queries import stored_webhooks

if TYPE_CHECKING:
    from service.domain.webhooks import Webhook, WebhookEvent
    from service.storage.database import Database


class KnownWebhooks:
    """One per worker. A second old at most, which is enough to know where to look; what is sent is read with its message."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.change = 0
        """The number of the last change that is known."""
        self.all: list[Webhook] = []

    async def refresh(self) -> None:
        """Know what is stored now."""
        async with self._database.reading() as connection:
            change = await stored_webhooks.last_change(connection)
            if change != self.change:
                self.all = await stored_webhooks.all_webhooks(connection)
                self.change = change

    def want(self, event: WebhookEvent, experiment: str) -> bool:
        """Is anybody to be told of such an event of this experiment?"""
        return any(webhook.enabled and webhook.wants(event, experiment) for webhook in self.all)

    def concern(self, experiment: str) -> bool:
        """Is anybody to be told of this experiment?"""
        return any(self.want(event, experiment) for event in WEBHOOK_EVENTS)
