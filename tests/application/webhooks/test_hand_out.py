"""Events become messages: of what was asked for, from then on, once and in order, whoever hands them out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from service.application.commands import delete, manage_webhooks
from service.application.commands.arms import AddArm, ChangeArm
from service.application.commands.delete import Deleter
from service.application.commands.lifecycle import LifecycleMove
from service.application.copies.dump import dump
from service.application.copies.dump_file import DumpFile
from service.application.copies.load import LoadRequest, load
from service.application.webhooks.hand_out import HandOut, hand_out
from service.domain import Arm
from service.domain.callers import SERVICE, by_service
from service.domain.webhooks import Webhook
from service.storage.queries import announced_events
from testing.outboxes import Outboxes
from testing.receiver import Receiver
from testing.rows import Rows
from testing.workers import Workers

_ELSEWHERE = "https://hooks.example.com/bestarm"


def _hand_out(outboxes: Outboxes, number: int = 0) -> None:
    """All news become messages; nothing is sent."""

    async def round_of() -> None:
        await outboxes.contexts[number].webhooks.refresh()
        await HandOut(outboxes.contexts[number]).round()

    outboxes.workers.run(round_of())


def _told(outboxes: Outboxes, webhook: Webhook) -> list[tuple[str, str | None, int | None]]:
    return [(one.event, one.experiment, one.sequence) for one in outboxes.deliveries(webhook)]


def test_a_webhook_is_told_of_what_it_asked_for(outboxes: Outboxes, workers: Workers) -> None:
    """By kinds of events and by patterns of experiments; what has no name in the contract is nobody's."""
    workers.create("checkout-1", [("a", 0.0), ("b", 0.0)])
    everything, _ = outboxes.create(_ELSEWHERE)
    arms, _ = outboxes.create(_ELSEWHERE, events=("arm.changed",))
    checkout, _ = outboxes.create(_ELSEWHERE, experiments=("checkout-*", "nothing"))
    outboxes.pause("one")
    workers.submit("one", AddArm(Arm(0, "c", "Third", {"large": "x" * 9_000})))
    workers.submit("one", ChangeArm("c", {"status": "disabled"}))
    workers.submit("checkout-1", LifecycleMove("conclude", "b"))
    workers.submit("checkout-1", LifecycleMove("reopen"))
    _hand_out(outboxes)
    of_one = [("experiment.paused", "one", 2), ("arm.changed", "one", 4), ("arm.changed", "one", 5)]
    of_checkout = [("experiment.concluded", "checkout-1", 2), ("experiment.paused", "checkout-1", 3)]
    assert sorted(_told(outboxes, everything)) == sorted(of_one + of_checkout)
    assert _told(outboxes, arms) == of_one[1:]
    assert _told(outboxes, checkout) == of_checkout
    added, disabled = (one.message["data"] for one in outboxes.deliveries(arms))
    assert isinstance(added, dict)
    assert isinstance(disabled, dict)
    assert (added["change"], added["after"], added["sentence"]) == (
        "added",
        {"name": "Third", "min_share": 0.0, "status": "active"},
        "Third was added as an arm.",
    )
    assert (disabled["changed"], disabled["before"], disabled["after"]) == (
        ["status"],
        {"status": "active"},
        {"status": "disabled"},
    )


def test_a_new_webhook_begins_with_what_happens_next(outboxes: Outboxes, workers: Workers) -> None:
    """Nothing of before, whether it was handed out to others or not; a wider filter counts from then on, too."""
    outboxes.pause("one")
    first, _ = outboxes.create(_ELSEWHERE)
    outboxes.pause("one")
    second, _ = outboxes.create(_ELSEWHERE, experiments=("other",))
    third, _ = outboxes.create(_ELSEWHERE)
    _hand_out(outboxes)
    assert _told(outboxes, first) == [("experiment.paused", "one", 4)]
    assert _told(outboxes, third) == []
    workers.run(manage_webhooks.change(outboxes.contexts[0], SERVICE, second.id, {"experiments": None}))
    outboxes.pause("one")
    _hand_out(outboxes)
    assert _told(outboxes, second) == [("experiment.paused", "one", 6)]


def test_workers_that_see_the_same_news_make_one_message(outboxes: Outboxes, workers: Workers) -> None:
    """At the same time, and one after the other with what they remember."""
    webhook, _ = outboxes.create(_ELSEWHERE)
    both = [HandOut(context) for context in outboxes.contexts]

    async def at_once() -> None:
        for context in outboxes.contexts:
            await context.webhooks.refresh()
        await asyncio.gather(*(one.round() for one in both for _ in range(3)))

    for _ in range(5):
        outboxes.pause("one", 2)
        workers.run(at_once())
    assert [sequence for *_, sequence in _told(outboxes, webhook)] == list(range(2, 22, 2))


def test_more_events_than_a_transaction_takes(outboxes: Outboxes, workers: Workers) -> None:
    """All become messages, in order."""
    webhook, _ = outboxes.create(_ELSEWHERE, events=("arm.changed",))
    outboxes.set_clock()
    for number in range(120):
        workers.submit("one", ChangeArm("a", {"name": f"Name {number}"}))
    _hand_out(outboxes)
    assert [sequence for *_, sequence in _told(outboxes, webhook)] == list(range(2, 122))


def test_a_hand_out_that_fails_halfway_has_done_nothing(outboxes: Outboxes, workers: Workers) -> None:
    """A worker that dies before its transaction ends leaves neither messages nor a moved cursor."""
    webhook, _ = outboxes.create(_ELSEWHERE)
    outboxes.pause("one", 2)

    async def die() -> None:
        async with outboxes.contexts[0].database.writing() as connection:
            await hand_out(connection, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        workers.run(die())
    assert _told(outboxes, webhook) == []
    _hand_out(outboxes, 1)
    assert [sequence for *_, sequence in _told(outboxes, webhook)] == [2, 4]


def test_news_are_found_however_late_they_are_seen(outboxes: Outboxes, workers: Workers) -> None:
    """A worker that starts finds what happened while none was there, or was handed out halfway."""
    webhook, _ = outboxes.create(_ELSEWHERE)
    outboxes.pause("one")
    _hand_out(outboxes)
    outboxes.pause("one", 2)
    _hand_out(outboxes, 1)  # has never looked before
    assert [sequence for *_, sequence in _told(outboxes, webhook)] == [2, 4, 6]

    async def news() -> list[announced_events.News]:
        async with outboxes.contexts[0].database.reading() as connection:
            return await announced_events.news_since(connection, 0)

    assert workers.run(news()) == []


def test_a_deleted_experiment_s_last_words_are_told(outboxes: Outboxes, workers: Workers, receiver: Receiver) -> None:
    """What happened right before, and what still waits: although nothing of the experiment is left."""
    webhook, secret = outboxes.create(receiver.url)
    receiver.faults.extend(["error"])
    outboxes.pause("one")
    outboxes.play(lambda: receiver.requests)
    workers.submit("one", LifecycleMove("conclude", "a"))
    workers.submit("one", LifecycleMove("archive"))
    workers.run(delete.delete(workers.contexts[1], by_service("one"), "one"))
    workers.run(Deleter(workers.contexts[0]).remove_all())
    with Rows(workers.url) as rows:
        assert rows.query("SELECT count(*) FROM events") == [(0,)]
        assert rows.query("SELECT count(*) FROM webhook_cursors") == [(0,)]
    outboxes.play(lambda: len(receiver.messages()) == 2)
    assert [one["type"] for one in receiver.messages()] == ["experiment.paused", "experiment.concluded"]
    assert receiver.messages()[1]["data"]["arm"] == "a"
    assert all(one.is_signed_by(secret) for one in receiver.requests)
    outboxes.settle()
    assert outboxes.webhook(webhook).waiting.messages == 0


def test_what_happened_to_a_loaded_experiment_elsewhere_is_no_news(outboxes: Outboxes, workers: Workers, tmp_path: Path) -> None:
    """However lately; it is told of from its loading on."""
    outboxes.pause("one", 2)
    webhook, _ = outboxes.create(_ELSEWHERE, experiments=("copy",))
    outboxes.pause("one", 2)
    database = outboxes.contexts[0].database
    with (tmp_path / "one.jsonl").open("wb") as file:
        workers.run(dump(database, "one", file, lambda *_: None))
    workers.run(load(database, DumpFile(tmp_path / "one.jsonl"), LoadRequest(lambda _: None, "copy")))
    _hand_out(outboxes)
    assert _told(outboxes, webhook) == []
    outboxes.pause("copy")
    _hand_out(outboxes)
    assert [(event, key) for event, key, _ in _told(outboxes, webhook)] == [("experiment.paused", "copy")]


def test_an_experiment_on_its_way_in_is_nobody_s(outboxes: Outboxes, workers: Workers) -> None:
    """It has no key yet, and may never get one."""
    webhook, _ = outboxes.create(_ELSEWHERE)
    outboxes.pause("one")
    _write(workers, "UPDATE experiments SET status = 'loading', key = 'x/loading'")
    _hand_out(outboxes)
    assert _told(outboxes, webhook) == []
    _write(workers, "UPDATE experiments SET status = 'running', key = 'one'")
    _hand_out(outboxes)
    assert len(_told(outboxes, webhook)) == 1


def _write(workers: Workers, statement: str) -> None:
    """Change the database past the service."""

    async def written() -> None:
        async with workers.contexts[0].database.writing() as connection:
            await connection.execute(text(statement))

    workers.run(written())


def test_an_experiment_that_cannot_be_read_holds_up_no_other(outboxes: Outboxes, workers: Workers) -> None:
    """Its events wait until it can; all others are told."""
    webhook, _ = outboxes.create(_ELSEWHERE)
    workers.create("two", [("a", 0.0), ("b", 0.0)])
    for key in ("one", "two"):
        outboxes.pause(key)

    _write(workers, "UPDATE events SET details = '{' WHERE experiment_id = 1 AND sequence = 2")
    _hand_out(outboxes)
    assert _told(outboxes, webhook) == [("experiment.paused", "two", 2)]
    mended = "(SELECT details FROM events WHERE experiment_id = 2 AND sequence = 2)"
    _write(workers, f"UPDATE events SET details = {mended} WHERE details = '{{'")
    _hand_out(outboxes)
    assert _told(outboxes, webhook)[1:] == [("experiment.paused", "one", 2)]


def test_without_webhooks_nothing_is_written(workers: Workers, outboxes: Outboxes) -> None:
    """No cursor, no message, no note, whatever happens."""
    outboxes.pause("one", 3)
    for number in range(2):
        outboxes.round(number)
    with Rows(workers.url) as rows:
        for table in ("webhook_cursors", "webhook_deliveries", "webhook_queues"):
            assert rows.query(f"SELECT count(*) FROM {table}") == [(0,)]
