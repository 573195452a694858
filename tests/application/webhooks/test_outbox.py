"""What a worker does for webhooks once a second: almost nothing where there are none, and no quarrel where there is much."""

from __future__ import annotations

import asyncio

from sqlalchemy import text
from structlog.testing import capture_logs

from service.application.commands import manage_webhooks
from service.domain.callers import SERVICE
from service.domain.webhooks import Webhook
from testing.outboxes import Outboxes
from testing.receiver import Receiver
from testing.statements import Statements
from testing.workers import Workers

_KEYS = ("one", "two", "three")
_PAUSES = 6


def _statements(outboxes: Outboxes, number: int = 0) -> list[str]:
    """What a round asks of the database."""
    with Statements(outboxes.contexts[number].database) as asked:
        outboxes.round(number)
    return asked


def test_without_webhooks_a_round_reads_one_number(outboxes: Outboxes) -> None:
    """Whatever happens to experiments; with one, it looks for news and for what is due, and reads no more while there is none."""
    outboxes.pause("one", 3)
    assert len(_statements(outboxes)) == 1
    outboxes.create("https://hooks.example.com/", experiments=("of-nobody",))
    outboxes.round()
    asked = _statements(outboxes)
    assert len([one for one in asked if "clock_timestamp" not in one]) == 3, asked
    assert all(one.lstrip().startswith("SELECT") for one in asked)


def test_messages_go_after_a_month(outboxes: Outboxes, receiver: Receiver) -> None:
    """Delivered or not; what waited has no queue any more, and younger ones stay."""
    webhook, _ = outboxes.create(receiver.url)
    outboxes.pause("one", 2)
    outboxes.play(lambda: len(receiver.messages()) == 2)
    outboxes.settle()
    disabled = {"status": "disabled"}
    outboxes.workers.run(manage_webhooks.change(outboxes.contexts[0], SERVICE, webhook.id, disabled))
    outboxes.pause("one")
    outboxes.settle()
    assert [one.status for one in outboxes.deliveries(webhook)] == ["delivered", "delivered", "waiting"]

    async def age() -> None:
        async with outboxes.contexts[0].database.writing() as connection:
            older = "UPDATE webhook_deliveries SET created_at = created_at - 31 * 86400000000 WHERE sequence <> 4"
            await connection.execute(text(older))

    outboxes.workers.run(age())
    for outbox in outboxes.outboxes:
        outbox._remove_at = 0.0  # noqa: SLF001 - as if ten minutes had passed
    outboxes.settle()
    assert [one.sequence for one in outboxes.deliveries(webhook)] == [4]
    outboxes.workers.run(manage_webhooks.change(outboxes.contexts[0], SERVICE, webhook.id, {"status": "enabled"}))
    outboxes.pause("one")
    outboxes.play(lambda: len(receiver.messages()) == 3)
    assert [one["data"]["version"] for one in receiver.messages()] == [2, 4, 8]


class _Turmoil:
    """All that can happen to webhooks, at the same time, until enough events have happened."""

    def __init__(self, outboxes: Outboxes, webhook: Webhook, receiver: Receiver) -> None:
        self._outboxes, self._webhook, self._receiver = outboxes, webhook.id, receiver
        self._is_over = False

    async def run(self) -> None:
        """All of it."""
        await asyncio.gather(self._pause(), self._change(), self._resend(), self._rounds(0), self._rounds(1))

    async def _change(self) -> None:
        context = self._outboxes.contexts[1]
        while not self._is_over:
            for experiments in (None, ("*",)):
                await manage_webhooks.change(context, SERVICE, self._webhook, {"experiments": experiments})
                await manage_webhooks.test(context, SERVICE, self._webhook)

    async def _resend(self) -> None:
        context = self._outboxes.contexts[1]
        while not self._is_over:
            async with context.database.reading() as connection:
                found = await connection.execute(text("SELECT id FROM webhook_deliveries WHERE subject IS NOT NULL LIMIT 5"))
                ids = [str(one) for (one,) in found]
            for one in ids:
                await manage_webhooks.resend(context, SERVICE, self._webhook, one)
            await asyncio.sleep(0.01)

    async def _rounds(self, number: int) -> None:
        while not self._is_over:
            await self._outboxes.outboxes[number].round()
            await asyncio.sleep(0.005)

    async def _pause(self) -> None:
        for _ in range(_PAUSES):
            self._receiver.faults.extend(["error", "close", None])
            for move in ("pause", "resume"):
                await asyncio.gather(*(self._outboxes.move(key, move) for key in _KEYS))
            await asyncio.sleep(0.02)
        self._is_over = True


def test_everything_at_once(workers: Workers, receiver: Receiver) -> None:
    """Events, changed webhooks, messages sent again, failures: two workers come through it without a word of complaint.

    Nobody waits for somebody who waits for them, and at the end every event was told, in order.
    """
    with Outboxes(workers, attempts=50, first_seconds=0.001) as outboxes:
        for key in _KEYS:
            workers.create(key, [("a", 0.0), ("b", 0.0)])
        webhook, _ = outboxes.create(receiver.url, events=("experiment.paused",))
        with capture_logs() as logged:
            workers.run(_Turmoil(outboxes, webhook, receiver).run())
            outboxes.play(lambda: all(len(_told(receiver, key)) == _PAUSES for key in _KEYS))
        assert [one for one in logged if one["event"] != "a message was not delivered"] == []
        for key in _KEYS:
            assert _told(receiver, key) == [2 * number for number in range(1, _PAUSES + 1)]


def _told(receiver: Receiver, key: str) -> list[int]:
    return [one["data"]["version"] for one in receiver.messages() if one["data"].get("experiment") == key]
