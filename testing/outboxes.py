"""The outboxes of several workers in this process, on a real database, with endpoints of the tests' own and little patience."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from service.application.commands import manage_webhooks
from service.application.commands.idempotency import Once
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.manage_webhooks import NewSecret, WantedWebhook
from service.application.reads import webhook_list
from service.application.webhooks.outbox import Outbox
from service.application.webhooks.retries import RetrySchedule
from service.application.webhooks.sender import Sender
from service.domain import Move
from service.domain.callers import SERVICE, by_service
from service.domain.network_addresses import AllowedNetworks
from service.domain.webhooks import WEBHOOK_EVENTS, Delivery, Webhook
from service.storage.queries import stored_webhooks
from testing.workers import Workers

ANYWHERE_HERE = AllowedNetworks.named(["127.0.0.0/8"])
PATIENT, IMPATIENT = 30.0, 0.5
"""How many seconds an endpoint may take: enough for any busy machine, or so few that it is soon over with one that hangs."""


class Outboxes:
    """One a worker; they are played round by round, and their messages travel meanwhile."""

    def __init__(self, workers: Workers, *, attempts: int = 9, first_seconds: float = 0.02, seconds: float = PATIENT) -> None:
        self.workers = workers
        self.set_clock()
        self._sender = Sender(ANYWHERE_HERE, seconds)
        self.contexts = [replace(context, sender=self._sender) for context in workers.contexts]
        schedule = RetrySchedule(first_seconds, attempts)
        self.outboxes = [Outbox(context, schedule) for context in self.contexts]

    def create(self, url: str, **wanted: Any) -> tuple[Webhook, str]:  # noqa: ANN401 - the fields of WantedWebhook
        """A webhook and its secret."""
        made: list[NewSecret] = []

        def note(new: NewSecret) -> bytes:
            made.append(new)
            return b""

        fields = {"events": WEBHOOK_EVENTS, "experiments": None, "template": "standard"} | wanted
        once = Once("webhooks", None, "", creates=True, render=note)
        self.workers.run(manage_webhooks.create(self.contexts[0], SERVICE, WantedWebhook(url, **fields), once)).written()
        assert made[0].secret is not None
        return made[0].webhook, made[0].secret

    def set_clock(self) -> None:
        """Events have the time that it is."""
        self.workers.now = time.time_ns() // 1_000

    async def move(self, key: str, move: Move) -> None:
        """One move of an experiment, by the first worker, at the time that it is."""
        self.set_clock()
        await self.contexts[0].writer.submit(by_service(key), LifecycleMove(move))

    def pause(self, key: str, times: int = 1) -> None:
        """So many events of an experiment that are told."""
        for _ in range(times):
            self.workers.run(self.move(key, "pause"))
            self.workers.run(self.move(key, "resume"))

    def round(self, number: int = 0) -> None:
        """One round of one worker; what it sends is on its way."""
        self.workers.run(self.outboxes[number].round())

    def play(self, until: Callable[[], object], *numbers: int, seconds: float = 30) -> None:
        """Rounds of these workers, or of all, until it holds; fails if it does not."""
        playing = [self.outboxes[number] for number in numbers] or self.outboxes
        deadline = time.monotonic() + seconds

        async def rounds() -> None:
            while not until():
                assert time.monotonic() < deadline
                await asyncio.gather(*(one.round() for one in playing))
                await asyncio.sleep(0.01)

        self.workers.run(rounds())

    def settle(self, seconds: float = 0.1) -> None:
        """Let what is on its way arrive, and play on for a moment."""
        end = time.monotonic() + seconds
        self.play(lambda: time.monotonic() > end)

    def webhook(self, webhook: Webhook) -> webhook_list.ListedWebhook:
        """As it is stored now."""
        return self.workers.run(webhook_list.webhook(self.contexts[0], webhook.id))

    def known(self, webhook: Webhook) -> Webhook:
        """As the first worker knows it; to be asked while it plays."""
        return next(one for one in self.contexts[0].webhooks.all if one.id == webhook.id)

    def store(self, webhook: Webhook) -> None:
        """Let it be this from now on."""

        async def write() -> None:
            async with self.contexts[0].database.writing() as connection:
                await stored_webhooks.hold(connection)
                await stored_webhooks.replace_webhook(connection, webhook)

        self.workers.run(write())

    def resend(self, delivery: Delivery) -> None:
        """Send a message again."""
        self.workers.run(manage_webhooks.resend(self.contexts[0], SERVICE, delivery.webhook, delivery.id))

    def deliveries(self, webhook: Webhook) -> list[Delivery]:
        """Its messages, oldest first."""
        found = self.workers.run(webhook_list.page_of_deliveries(self.contexts[0], webhook.id, None, None, 1000))
        return found.deliveries[::-1]

    def close(self) -> None:
        """Send nothing more."""
        for outbox in self.outboxes:
            self.workers.run(outbox.close())
        self.workers.run(self._sender.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
