"""What a worker does for webhooks once a second: know them, hand out what is new, deliver what is due, forget what is old."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from service.application.webhooks.deliverer import Deliverer
from service.application.webhooks.hand_out import HandOut
from service.application.webhooks.webhook_metrics import show_waiting
from service.domain.limits import DELIVERIES_KEPT_DAYS
from service.engine.clock import now_microseconds
from service.storage.queries import stored_deliveries

if TYPE_CHECKING:
    from service.application.context import Context
    from service.application.webhooks.retries import RetrySchedule

_COUNT_EVERY_SECONDS = 10.0
_REMOVE_EVERY_SECONDS = 600.0
_DAY = 86_400_000_000


class Outbox:
    """One per worker."""

    def __init__(self, context: Context, schedule: RetrySchedule | None = None) -> None:
        self._context = context
        self._hand_out = HandOut(context)
        self._deliverer = Deliverer(context, schedule)
        self._count_at = self._remove_at = 0.0

    async def round(self) -> None:
        """Where there are no webhooks, one number is read, and that is all."""
        await self._context.webhooks.refresh()
        if not self._context.webhooks.all:
            if self._count_at:
                self._count_at = 0.0
                show_waiting((), now_microseconds())
            return
        await self._hand_out.round()
        await self._deliverer.round()
        if time.monotonic() >= self._count_at:
            self._count_at = time.monotonic() + _COUNT_EVERY_SECONDS
            async with self._context.database.reading() as connection:
                waiting = await stored_deliveries.waiting_of(connection)
            show_waiting(waiting.values(), now_microseconds())
        if time.monotonic() >= self._remove_at:
            self._remove_at = time.monotonic() + _REMOVE_EVERY_SECONDS
            await self._remove_old()

    async def close(self) -> None:
        """Stop sending."""
        await self._deliverer.close()

    async def _remove_old(self) -> None:
        older_than, more = now_microseconds() - DELIVERIES_KEPT_DAYS * _DAY, True
        while more:
            async with self._context.database.writing() as connection:
                more = await stored_deliveries.remove_old(connection, older_than)
