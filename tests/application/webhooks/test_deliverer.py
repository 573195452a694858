"""Messages arrive: in order, at least once, whatever the receiver does, and one receiver's trouble is no other's."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from service.application.commands import manage_webhooks
from service.domain.callers import SERVICE
from service.domain.webhooks import Webhook
from service.errors import Conflict
from service.storage.queries import delivery_queues
from service.storage.queries.delivery_queues import Attempt, AttemptResult, Queue
from testing.outboxes import IMPATIENT, PATIENT, Outboxes
from testing.receiver import Fault, Receiver
from testing.rows import Rows
from testing.statements import Statements
from testing.workers import Workers

_FAULTS: tuple[Fault, ...] = ("error", "redirect", "hang", "slow", "close", "half", "endless")


def _versions(receiver: Receiver, experiment: str = "one") -> list[int]:
    """The numbers of the events that were told, in the order of their first arrival."""
    return [one["data"]["version"] for one in receiver.messages() if one["data"]["experiment"] == experiment]


def _paused(times: int) -> list[int]:
    """The numbers of so many pauses: creation is 1, and each is followed by its end."""
    return [2 * number for number in range(1, times + 1)]


@pytest.mark.parametrize("fault", _FAULTS)
def test_every_message_arrives_in_order_whatever_the_receiver_does(workers: Workers, receiver: Receiver, fault: Fault) -> None:
    """Each event once, in its order, with a signature that the official verifier accepts; faulty attempts included."""
    with Outboxes(workers, seconds=IMPATIENT if fault == "hang" else PATIENT) as outboxes:
        workers.create("one", [("a", 0.0), ("b", 0.0)])
        _, secret = outboxes.create(receiver.url)
        receiver.faults.extend([fault, None, fault, fault])
        outboxes.pause("one", 4)
        outboxes.play(lambda: len(receiver.messages()) == 4)
        outboxes.settle()
    assert _versions(receiver) == _paused(4)
    assert all(one.is_signed_by(secret) for one in receiver.requests)
    told = [one.message["data"]["version"] for one in receiver.requests]
    assert told == sorted(told), "nothing is told before what came before it was taken"


def test_a_receiver_that_is_down_for_a_while_misses_nothing(outboxes: Outboxes, receiver: Receiver) -> None:
    """What happens meanwhile arrives when it is back, in order, each once."""
    webhook, secret = outboxes.create(receiver.url)
    outboxes.pause("one")
    outboxes.play(receiver.messages)
    receiver.down()
    outboxes.pause("one", 3)
    while not outboxes.deliveries(webhook)[-3:][0].attempts >= 3:
        outboxes.settle(0.05)
    receiver.up()
    outboxes.play(lambda: len(receiver.messages()) == 4)
    assert _versions(receiver) == _paused(4)
    assert len(receiver.requests) == 4
    assert all(one.is_signed_by(secret) for one in receiver.requests)


def test_two_workers_never_send_the_same(outboxes: Outboxes, receiver: Receiver, workers: Workers) -> None:
    """While nothing fails, each message is sent once, although both look for what is due all the time."""
    outboxes.create(receiver.url)
    for number in range(5):
        workers.create(f"more-{number}", [("a", 0.0), ("b", 0.0)])
    for _ in range(4):
        for number in range(5):
            outboxes.pause(f"more-{number}")
        outboxes.settle(0.05)
    outboxes.play(lambda: len(receiver.messages()) == 20)
    outboxes.settle(0.3)
    assert len(receiver.requests) == 20
    for number in range(5):
        assert _versions(receiver, f"more-{number}") == _paused(4)


def test_what_one_experiment_waits_for_holds_up_no_other(receiver: Receiver, workers: Workers) -> None:
    """Of one endpoint the queue of one experiment fails; another experiment's, and another endpoint's, go on."""
    with Receiver() as other, Outboxes(workers, first_seconds=3600) as outboxes:
        workers.create("one", [("a", 0.0), ("b", 0.0)])
        webhook, _ = outboxes.create(receiver.url)
        outboxes.create(other.url)
        workers.create("two", [("a", 0.0), ("b", 0.0)])
        receiver.faults.extend(["error"])
        outboxes.pause("one", 2)
        outboxes.play(lambda: receiver.requests)
        outboxes.pause("two", 2)
        outboxes.play(lambda: len(_versions(receiver, "two")) == 2 and len(other.messages()) == 4)
        assert _versions(receiver) == [], "it waits for an hour"
        outboxes.settle()
        outboxes.resend(outboxes.deliveries(webhook)[0])
        outboxes.play(lambda: _versions(receiver) == _paused(2))


def test_an_endpoint_that_hangs_leaves_room_for_others(outboxes: Outboxes, receiver: Receiver, workers: Workers) -> None:
    """However many experiments wait for it."""
    with Receiver() as other:
        outboxes.create(receiver.url)
        outboxes.create(other.url, experiments=("last",))
        receiver.faults.extend(["hang"] * 40)
        for number in range(20):
            workers.create(f"more-{number}", [("a", 0.0), ("b", 0.0)])
            outboxes.pause(f"more-{number}")
        workers.create("last", [("a", 0.0), ("b", 0.0)])
        outboxes.play(lambda: len(receiver.requests) == 4, 0)
        outboxes.pause("last")
        outboxes.play(other.messages, 0)
        assert len(receiver.requests) <= 8, "four at a time"


def test_after_the_last_attempt_it_is_disabled_and_enabled_it_gets_all(workers: Workers, receiver: Receiver) -> None:
    """It says why; what happens meanwhile is kept; enabled again it gets everything in order."""
    with Outboxes(workers, attempts=3, first_seconds=0.01) as outboxes:
        workers.create("one", [("a", 0.0), ("b", 0.0)])
        webhook, secret = outboxes.create(receiver.url)
        receiver.faults.extend(["error"] * 3)
        outboxes.pause("one", 2)
        outboxes.play(lambda: not outboxes.known(webhook).enabled)
        notice = outboxes.webhook(webhook).webhook.notice
        assert notice == "3 attempts failed, the last one so: The endpoint answered 500."
        outboxes.pause("one")
        outboxes.settle()
        assert len(receiver.requests) == 3
        assert outboxes.webhook(webhook).waiting.messages == 3
        with pytest.raises(Conflict, match="disabled"):
            outboxes.resend(outboxes.deliveries(webhook)[0])
        enabled = workers.run(manage_webhooks.change(outboxes.contexts[0], SERVICE, webhook.id, {"status": "enabled"}))
        assert (enabled.enabled, enabled.notice) == (True, None)
        outboxes.play(lambda: len(receiver.messages()) == 3)
        assert _versions(receiver) == _paused(3)
        assert all(one.is_signed_by(secret) for one in receiver.requests)


def test_an_endpoint_that_is_gone_is_not_asked_again(outboxes: Outboxes, receiver: Receiver) -> None:
    """410 disables at once."""
    webhook, _ = outboxes.create(receiver.url)
    receiver.faults.extend(["gone"])
    outboxes.pause("one", 2)
    outboxes.play(lambda: not outboxes.known(webhook).enabled)
    outboxes.settle()
    assert len(receiver.requests) == 1
    assert outboxes.webhook(webhook).webhook.notice == "The endpoint answered 410 Gone."


def _take(outboxes: Outboxes, queue: Queue, lease_seconds: float) -> Attempt | None:
    """As a worker does that is killed before it writes anything down."""

    async def take() -> Attempt | None:
        async with outboxes.contexts[0].database.writing() as connection:
            return await delivery_queues.take(connection, queue, round(lease_seconds * 1_000_000))

    return outboxes.workers.run(take())


def _queue(outboxes: Outboxes, webhook: Webhook) -> Queue:
    """The one that was handed out, with what waits in it; nothing of it was sent yet."""

    async def queues() -> list[Queue]:
        async with outboxes.contexts[0].database.reading() as connection:
            return await delivery_queues.due_queues(connection, [webhook.id], 10)

    (queue,) = outboxes.workers.run(queues())
    return queue


def _handed_out(outboxes: Outboxes, receiver: Receiver, pauses: int) -> tuple[Webhook, Queue]:
    """A queue with so many messages."""
    webhook, _ = outboxes.create(receiver.url)
    outboxes.pause("one", pauses)
    outboxes.workers.run(outboxes.outboxes[0]._hand_out.round())  # noqa: SLF001 - and nothing is sent
    return webhook, _queue(outboxes, webhook)


def test_a_killed_worker_s_lease_is_taken_over(outboxes: Outboxes, receiver: Receiver) -> None:
    """Not before it is over: until then nobody else sends; then the same message is the first."""
    webhook, queue = _handed_out(outboxes, receiver, 2)
    began = time.monotonic()
    assert _take(outboxes, queue, 0.5) is not None
    assert _take(outboxes, queue, 0.5) is None, "it is somebody's"
    outboxes.play(lambda: receiver.requests)
    assert time.monotonic() - began >= 0.5
    outboxes.play(lambda: len(receiver.messages()) == 2)
    assert _versions(receiver) == _paused(2)
    assert outboxes.deliveries(webhook)[0].attempts == 2


def test_who_has_lost_its_lease_can_say_that_it_delivered_and_nothing_else(outboxes: Outboxes, receiver: Receiver) -> None:
    """A late failure changes nothing that another worker has begun; a late success spares the message another attempt."""
    webhook, queue = _handed_out(outboxes, receiver, 2)

    def finish(attempt: Attempt, result: AttemptResult) -> Attempt | None:
        async def write() -> Attempt | None:
            async with outboxes.contexts[0].database.writing() as connection:
                return await delivery_queues.finish(connection, attempt, result, pause=60_000_000, lease=10_000_000)

        return outboxes.workers.run(write())

    late = _take(outboxes, queue, 0.0)
    assert late is not None
    present = _take(outboxes, queue, 10.0)
    assert present is not None
    assert finish(late, AttemptResult(False, 500, "late")) is None
    assert outboxes.deliveries(webhook)[0].error is None
    assert finish(late, AttemptResult(True, 200)) is None
    assert [one.status for one in outboxes.deliveries(webhook)] == ["delivered", "waiting"]
    following = finish(present, AttemptResult(False, 500, "it had come already"))
    assert following is None
    assert outboxes.deliveries(webhook)[0].status == "delivered"


def test_a_queue_that_is_not_ours_to_take_is_left_alone(outboxes: Outboxes, receiver: Receiver) -> None:
    """It was disabled a moment ago, which this worker does not know: it is looked at once in a round, and not without end."""
    webhook, _ = _handed_out(outboxes, receiver, 2)
    workers, context = outboxes.workers, outboxes.contexts[0]
    workers.run(context.webhooks.refresh())
    outboxes.store(replace(webhook, status="disabled"))

    async def round_and_a_while() -> None:
        await outboxes.outboxes[0]._deliverer.round()  # noqa: SLF001 - without knowing better
        await asyncio.sleep(0.3)

    with Statements(context.database) as asked:
        workers.run(round_and_a_while())
    assert sum("webhook_queues" in one for one in asked) <= 3
    assert receiver.requests == []


def test_a_message_is_sent_again_under_its_id(outboxes: Outboxes, receiver: Receiver) -> None:
    """Although it was delivered; and one that waits for its next attempt is sent at once."""
    webhook, secret = outboxes.create(receiver.url)
    outboxes.pause("one", 2)
    outboxes.play(lambda: len(receiver.requests) == 2)
    outboxes.settle()
    first = outboxes.deliveries(webhook)[0]
    outboxes.resend(first)
    outboxes.play(lambda: len(receiver.requests) == 3)
    assert receiver.requests[2].id == receiver.requests[0].id == first.id
    assert receiver.requests[2].is_signed_by(secret)


def test_a_waiting_message_can_be_hurried(workers: Workers, receiver: Receiver) -> None:
    """It need not wait for an hour when the receiver is back."""
    with Outboxes(workers, first_seconds=3600) as outboxes:
        workers.create("one", [("a", 0.0), ("b", 0.0)])
        webhook, _ = outboxes.create(receiver.url)
        receiver.faults.extend(["error"])
        outboxes.pause("one", 2)
        outboxes.play(lambda: receiver.requests)
        outboxes.settle()
        (waiting, behind) = outboxes.deliveries(webhook)
        assert (waiting.status, waiting.attempts, waiting.response_status) == ("waiting", 1, 500)
        assert (waiting.next_attempt_at or 0) > waiting.created_at + 2_800_000_000
        assert (behind.status, behind.attempts) == ("waiting", 0)
        outboxes.resend(waiting)
        outboxes.play(lambda: len(receiver.messages()) == 2)
        assert _versions(receiver) == _paused(2)


def test_a_worker_that_stops_ends_its_sentence(outboxes: Outboxes, receiver: Receiver) -> None:
    """The message that is on its way arrives, once; those behind it are another worker's at once."""
    outboxes.create(receiver.url)
    receiver.faults.extend(["slow"])
    receiver.slow_seconds = 0.05
    outboxes.pause("one", 3)
    outboxes.play(lambda: receiver.requests, 0)
    outboxes.workers.run(outboxes.outboxes[0].close())
    assert len(receiver.requests) == 1
    outboxes.play(lambda: len(receiver.messages()) == 3, 1)
    assert len(receiver.requests) == 3


def test_what_hangs_is_let_go_of_when_a_worker_stops(outboxes: Outboxes, receiver: Receiver) -> None:
    """Another worker need not wait for a lease to end."""
    outboxes.create(receiver.url)
    receiver.faults.extend(["hang"])
    outboxes.pause("one")
    outboxes.play(lambda: receiver.requests, 0)
    with Rows(outboxes.workers.url) as rows:
        ((claim,),) = rows.query("SELECT claim FROM webhook_queues")
        assert claim is not None
        outboxes.workers.run(outboxes.outboxes[0].close())
        assert rows.query("SELECT claim FROM webhook_queues") == [(None,)]
    outboxes.play(receiver.messages, 1)


def test_a_deleted_webhook_is_told_nothing_more(outboxes: Outboxes, receiver: Receiver) -> None:
    """What waited for it goes with it, also what is on its way just then."""
    webhook, _ = outboxes.create(receiver.url)
    receiver.faults.extend(["error", "slow"])
    outboxes.pause("one", 3)
    outboxes.play(lambda: len(receiver.requests) == 2)
    outboxes.workers.run(manage_webhooks.delete(outboxes.contexts[1], SERVICE, webhook.id))
    outboxes.settle(0.6)
    assert len(receiver.requests) == 2
    outboxes.pause("one")
    outboxes.settle()
    assert len(receiver.requests) == 2


def test_both_secrets_sign_while_one_takes_the_other_s_place(outboxes: Outboxes, receiver: Receiver) -> None:
    """A receiver that knows either accepts; after the grace period only the new one is good."""
    webhook, old = outboxes.create(receiver.url)
    rotated = webhook.with_new_secret(time.time_ns() // 1_000, 3_600_000_000)
    outboxes.store(rotated)
    outboxes.pause("one")
    outboxes.play(lambda: receiver.requests)
    new = rotated.secrets[0].secret
    assert all(receiver.requests[0].is_signed_by(one) for one in (old, new))
    outboxes.store(replace(rotated, secrets=(rotated.secrets[0], rotated.secrets[1]._replace(expires_at=1))))
    outboxes.pause("one")
    outboxes.play(lambda: len(receiver.requests) == 2)
    assert receiver.requests[1].is_signed_by(new)
    with pytest.raises(Exception, match="No matching signature"):
        receiver.requests[1].is_signed_by(old)


def test_threads_are_left_alone(outboxes: Outboxes, receiver: Receiver) -> None:
    """Names are resolved by a few threads, however many messages there are."""
    outboxes.create(receiver.url)
    outboxes.pause("one", 20)
    outboxes.play(lambda: len(receiver.messages()) == 20)
    assert sum(thread.name.startswith("webhook names") for thread in threading.enumerate()) <= 4
