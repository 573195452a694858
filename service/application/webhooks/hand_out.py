"""Handing out: events of the history that somebody asked for become messages in queues, once, and in their order.

The history is the outbox: an event is in it from the transaction on that did what it says. A cursor for each experiment says how
far it was handed out, and moves in the transaction that writes the messages. So a worker that is killed in between leaves nothing
half done, and of two workers that see the same news the second finds none.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from service.application.reads.sightings import sighting
from service.application.webhooks.messages import message_of
from service.domain.announcements import Announcement, announcement_of, arms_named_in
from service.domain.limits import MOST_EVENTS_AT_ONCE
from service.domain.webhooks import Delivery, new_message_id
from service.engine.clock import now_microseconds
from service.errors import DatabaseUnavailable, ExperimentNotFound, Overloaded
from service.storage.database_time import database_now
from service.storage.queries import announced_events, stored_deliveries, stored_webhooks

if TYPE_CHECKING:
    from service.application.context import Context
    from service.application.reads.sightings import Sighting
    from service.domain import Experiment
    from service.domain.webhooks import Webhook
    from service.storage.database import Connection
    from service.storage.queries.announced_events import News

# Clocks of other hosts may be so far behind, and a transaction may take so long.
_SKEW_MICROSECONDS = 120_000_000
# What was missed even so is found when all is looked at again.
_ALL_AGAIN_SECONDS = 600.0

log = structlog.get_logger(__name__)


class HandOut:
    """One per worker."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._change = 0
        self._since = 0
        self._all_again_at = 0.0

    async def round(self) -> None:
        """Hand out all news; there are some webhooks."""
        known, began = self._context.webhooks, now_microseconds()
        oldest = min(webhook.created_at for webhook in known.all) - 1
        since = max(oldest, self._since - _SKEW_MICROSECONDS)
        if known.change != self._change or time.monotonic() >= self._all_again_at:
            since = oldest
            self._all_again_at = time.monotonic() + _ALL_AGAIN_SECONDS
        async with self._context.database.reading() as connection:
            found = await announced_events.news_since(connection, since)
        for news in found:
            try:
                await self._hand_out(news)
            except DatabaseUnavailable:
                raise  # all others would fail, too
            except Exception:
                log.exception("events could not be handed out and will be tried again", experiment=news.key)
        self._since, self._change = began, known.change

    async def _hand_out(self, news: News) -> None:
        seen = await self._sighting(news.key) if self._context.webhooks.concern(news.key) else None
        more = True
        while more:
            async with self._context.database.writing() as connection:
                more = await hand_out(connection, news.experiment, seen)

    async def _sighting(self, key: str) -> Sighting | None:
        """A look to tell with it, if anybody can have one just now: without it the message is still worth telling."""
        try:
            return await sighting(self._context, key)
        except (ExperimentNotFound, Overloaded):
            return None
        except DatabaseUnavailable:
            raise
        except Exception:
            log.exception("a message goes without a look at its experiment", experiment=key)
            return None


async def hand_out(connection: Connection, experiment_id: int, seen: Sighting | None = None) -> bool:
    """Make messages of the next events of an experiment; whether there may be more of them."""
    webhooks = await stored_webhooks.all_webhooks(connection, kept=True)
    held = await announced_events.held_cursor(connection, experiment_id) if webhooks else None
    if held is None:
        return False
    experiment, sequence = held
    oldest = min(webhook.created_at for webhook in webhooks)
    events = await announced_events.announced_after(connection, experiment_id, sequence, oldest)
    if not events:
        return False
    named = {position for event in events for position in arms_named_in(event)}
    arms = await announced_events.named_arms(connection, experiment_id, named)
    now = await database_now(connection)
    for event in events:
        told = announcement_of(event, experiment, arms)
        for webhook in webhooks:
            if told is not None and _is_for(webhook, told, experiment):
                delivery = _delivery(webhook, told, experiment, seen, now)
                await stored_deliveries.insert_delivery(connection, delivery, experiment_id)
    await announced_events.move_cursor(connection, experiment_id, events[-1].sequence)
    return len(events) == MOST_EVENTS_AT_ONCE


def _is_for(webhook: Webhook, told: Announcement, experiment: Experiment) -> bool:
    """Did it ask for this, and before it happened? A disabled one may be enabled again, and is told then."""
    is_news = experiment.created_at >= webhook.created_at if told.is_baseline else told.at >= webhook.created_at
    return is_news and webhook.wants(told.type, experiment.key)


def _delivery(webhook: Webhook, told: Announcement, experiment: Experiment, seen: Sighting | None, now: int) -> Delivery:
    return Delivery(
        number=0,
        id=new_message_id(),
        webhook=webhook.id,
        event=told.type,
        experiment=experiment.key,
        sequence=told.sequence,
        message=message_of(told, experiment, seen),
        status="waiting",
        created_at=now,
    )
