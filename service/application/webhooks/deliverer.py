"""Delivering: queues that are due are taken, one worker each, and their messages sent one after the other.

A message that cannot be delivered holds up its own queue, what this endpoint is told of this experiment, and no other one. It is
tried again after growing pauses; when the last attempt has failed, or the endpoint says that it is gone, the webhook is disabled.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from service.application.webhooks import webhook_metrics
from service.application.webhooks.retries import RetrySchedule
from service.domain.callers import SERVICE
from service.domain.limits import MOST_DELIVERIES_AT_ONCE, MOST_DELIVERIES_TO_ONE
from service.engine.clock import now_microseconds
from service.errors import BestArmError
from service.storage.queries import delivery_queues, stored_instance_log, stored_webhooks

if TYPE_CHECKING:
    from service.application.context import Context
    from service.domain import Json
    from service.storage.queries.delivery_queues import Attempt, AttemptResult, Queue

# A queue is taken for three times as long as an attempt may take: that leaves time to write down what became of it.
_LEASE = 3
# So long a task works off queues of one endpoint before it makes room.
_TURN_SECONDS = 10.0
# How long a stop waits for answers of endpoints.
_GRACE_SECONDS = 2.0
_SECOND = 1_000_000

log = structlog.get_logger(__name__)


class Deliverer:
    """One per worker. Several workers share the queues; each is with one of them at a time."""

    def __init__(self, context: Context, schedule: RetrySchedule | None = None) -> None:
        self._context = context
        self._schedule = schedule or RetrySchedule()
        self._sending: dict[asyncio.Task[None], Queue] = {}
        self._is_closing = False

    @property
    def _lease(self) -> int:
        return round(_LEASE * self._context.sender.timeout_seconds * _SECOND)

    async def round(self) -> None:
        """Take queues that are due, as many as there is room for."""
        enabled = {webhook.id for webhook in self._context.webhooks.all if webhook.enabled}
        tried = set(self._sending.values())
        while enabled and (room := MOST_DELIVERIES_AT_ONCE - len(self._sending)) > 0:
            busy = Counter(queue.webhook for queue in self._sending.values())
            enabled -= {webhook for webhook, queues in busy.items() if queues >= MOST_DELIVERIES_TO_ONE}
            async with self._context.database.reading() as connection:
                due = await delivery_queues.due_queues(connection, enabled, room)
            began = [queue for queue in due if queue not in tried and self._begin(queue)]
            tried.update(began)  # one that another worker was faster with is still due for a moment, and not tried again now
            if not began:
                return

    def _begin(self, queue: Queue) -> bool:
        """Work a queue off beside all others, if its endpoint is not busy with as many already."""
        if Counter(one.webhook for one in self._sending.values())[queue.webhook] >= MOST_DELIVERIES_TO_ONE:
            return False
        task = asyncio.create_task(self._work_off(queue), name="webhook queue")
        self._sending[task] = queue
        task.add_done_callback(self._sending.pop)
        return True

    async def close(self) -> None:
        """Begin nothing more. What is on its way has a moment to arrive, and is let go of then: another worker tries it again."""
        self._is_closing = True
        if self._sending:
            await asyncio.wait(self._sending, timeout=_GRACE_SECONDS)
        for task in list(self._sending):
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _work_off(self, queue: Queue) -> None:
        """This queue, and then others of the endpoint that are due; after a while the room is somebody else's."""
        until, due = time.monotonic() + _TURN_SECONDS, [queue]
        try:
            while due and await self._send_all(due[0]) and not self._is_closing and time.monotonic() < until:
                async with self._context.database.reading() as connection:
                    due = await delivery_queues.due_queues(connection, [queue.webhook], 1)
        except BestArmError as trouble:
            log.warning("a webhook's queue could not be worked off and will be tried again", reason=str(trouble), **_about(queue))
        except Exception:
            log.exception("a webhook's queue could not be worked off and will be tried again", **_about(queue))

    async def _send_all(self, queue: Queue) -> bool:
        """One message after the other, until none is left or one could not be delivered; whether the queue was ours to take."""
        async with self._context.database.writing() as connection:
            attempt = taken = await delivery_queues.take(connection, queue, self._lease)
        while attempt is not None:
            attempt = await self._attempt(attempt)
        return taken is not None

    async def _attempt(self, attempt: Attempt) -> Attempt | None:
        """Send one message; the next one, if there is one."""
        if self._is_closing:
            await self._let_go(attempt)
            return None
        try:
            result = await self._context.sender.send_message(attempt.webhook, attempt.delivery)
        except asyncio.CancelledError:
            await self._let_go(attempt)
            raise
        pause = round(self._schedule.pause(attempt.delivery.attempts) * _SECOND)
        async with self._context.database.writing() as connection:
            following = await delivery_queues.finish(connection, attempt, result, pause, self._lease)
        if not result.delivered:
            await self._failed(attempt, result)
        return following

    async def _let_go(self, attempt: Attempt) -> None:
        """Nobody need wait for the end of the lease."""
        with suppress(BestArmError):
            async with self._context.database.writing() as connection:
                await delivery_queues.let_go(connection, attempt, now_microseconds())

    async def _failed(self, attempt: Attempt, result: AttemptResult) -> None:
        webhook, attempts = attempt.webhook, attempt.delivery.attempts
        about = {**_about(attempt.queue), "host": urlsplit(webhook.url).hostname, "message": attempt.delivery.id}
        log.warning("a message was not delivered", attempt=attempts, status=result.response_status, reason=result.error, **about)
        is_gone = result.response_status == HTTPStatus.GONE
        if is_gone or self._schedule.is_over(attempts):
            why = "The endpoint answered 410 Gone." if is_gone else f"{attempts} attempts failed, the last one so: {result.error}"
            if await disable(self._context, webhook.id, why):
                log.error("a webhook was disabled", notice=why, **about)


async def disable(context: Context, webhook_id: str, notice: str) -> bool:
    """Send nothing more to a webhook, and say why; whether that is new."""
    async with context.database.writing() as connection:
        await stored_webhooks.hold(connection)
        webhook = await stored_webhooks.webhook_by_id(connection, webhook_id, locked=True)
        if webhook is None or not webhook.enabled:
            return False
        await stored_webhooks.replace_webhook(connection, replace(webhook, status="disabled", notice=notice))
        details: dict[str, Json] = {"webhook": webhook_id, "host": urlsplit(webhook.url).hostname, "notice": notice}
        await stored_instance_log.append(connection, "webhook_disabled", details, now_microseconds(), SERVICE)
    webhook_metrics.count_disabled()
    await context.webhooks.refresh()
    return True


def _about(queue: Queue) -> dict[str, str | int]:
    return {"webhook": queue.webhook, "experiment_id": queue.subject}
