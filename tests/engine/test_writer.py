"""What a group does when one of its requests cannot be written, and how it knows that it was."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import asyncpg
import pytest
from msgspec import structs

from service.application.commands.arms import AddArm, ChangeArm
from service.application.commands.ask import Ask, AskAnswer
from service.application.commands.expire import Sweep
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.observations import ChangeObservation
from service.application.commands.tell import ObservationItem, Observe, RewardItem, Tell, TellAnswer, TellMany
from service.domain import Arm, Changes, Event, Expiry
from service.domain.callers import by_service
from service.engine.queue import Command
from service.storage.groups import writes
from service.storage.queries import stored_experiments, stored_history
from testing.workers import Workers


@asynccontextmanager
async def another_writer(url: str) -> AsyncIterator[None]:
    """Somebody else writes all experiments, and takes its time."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.partition(":///")[2], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.rollback()
    else:
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            await connection.execute("SELECT FROM experiments FOR UPDATE")
            yield
        await connection.close()


def test_one_request_that_cannot_be_written_harms_no_other(workers: Workers, key: str) -> None:
    """A unit that no column can hold, which the routes would have refused, among others of its group."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    answers = workers.submit_together(key, [Ask("one"), Ask("lone \ud800 surrogate"), Ask("three")])
    assert [type(answer) for answer in answers] == [AskAnswer, answers[1].__class__, AskAnswer]
    assert isinstance(answers[1], Exception)
    assert [answers[place].assignment.draw for place in (0, 2)] == [1, 2]
    fourth = workers.submit(key, Ask("four"), 1).assignment
    assert fourth is not None
    assert fourth.draw == 3
    workers.replay(key)


def test_one_of_many_that_cannot_be_written(workers: Workers, key: str) -> None:
    """The same in a group that is large enough to be written at once; then a key that another worker has used meanwhile."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    workers.submit(key, Ask(None))
    units = ["lone \ud800 surrogate" if number == 7 else str(number) for number in range(20)]
    answers = workers.submit_together(key, [Ask(unit) for unit in units])
    assert [place for place, answer in enumerate(answers) if not isinstance(answer, AskAnswer)] == [7]
    first = workers.submit(key, Ask("u", "key"), worker=1)
    repeated = workers.submit_together(key, [Ask("u", "key"), *(Ask(str(number)) for number in range(20))])
    assert repeated[0].replayed
    assert repeated[0].assignment == first.assignment
    assert [answer.created for answer in repeated[1:]] == [True] * 20
    workers.replay(key)


@pytest.mark.parametrize("asks", [1, 20])
def test_a_database_that_another_process_writes(workers: Workers, key: str, asks: int) -> None:
    """The group waits for its turn, and nothing else waits for the group."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    workers.submit(key, Ask(None))

    async def meanwhile() -> list[AskAnswer]:
        async with another_writer(workers.url):
            sent = [workers.enqueue(key, Ask(None)) for _ in range(asks)]
            began = time.monotonic()
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert time.monotonic() - began < 2
            assert not any(answer.done() for answer in sent)
        return await asyncio.wait_for(asyncio.gather(*sent), 30)

    answers = workers.run(meanwhile())
    assert [answer.created for answer in answers] == [True] * asks
    workers.replay(key)


def test_nobody_joins_a_request_that_cannot_be_written(workers: Workers, key: str) -> None:
    """While another worker is active, those who arrive are served with whoever waits for the lock; but not with this one."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    workers.submit(key, Ask(None))
    workers.submit(key, Ask(None), worker=1)

    async def many() -> list[object]:
        sent = [workers.enqueue(key, Ask("one")), workers.enqueue(key, Ask("lone \ud800 surrogate"))]
        for _ in range(100):
            await asyncio.sleep(0.0002)
            sent.append(workers.enqueue(key, Ask(None)))
        return await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), 30)

    answers = workers.run(many())
    assert [place for place, answer in enumerate(answers) if not isinstance(answer, AskAnswer)] == [1]
    workers.replay(key)


def test_a_request_queued_just_before_the_end_is_served(workers: Workers, key: str) -> None:
    """Closing waits for it."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    writer = workers.contexts[0].writer

    async def ask_and_close() -> AskAnswer:
        asked = asyncio.ensure_future(writer.submit(by_service(key), Ask(None)))
        await asyncio.sleep(0)
        await writer.close()
        return await asyncio.wait_for(asked, 10)

    assert workers.run(ask_and_close()).created
    workers.restart()


def test_a_group_without_a_draw_took_effect_only_if_all_of_it_did(workers: Workers, key: str) -> None:
    """Another worker may have written an equal event at the same place of the sequence, and nothing more."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    drawn = workers.submit(key, Ask(None)).assignment
    assert drawn is not None
    assert isinstance(workers.submit(key, Tell(drawn.id, "reward", 1.0), 1), TellAnswer)
    database = workers.contexts[0].database

    async def stored() -> Changes:
        async with database.reading() as connection:
            progress, _ = await stored_experiments.experiment_by_key(connection, key)
            events: list[Event] = [event async for event in stored_history.history(connection, progress.experiment.id)]
        return Changes(progress, events=events[-1:])

    async def written(*changed: Changes) -> bool:
        return await writes.is_written(database.groups, changed)

    told = workers.run(stored())
    other = structs.replace(told.events[0], sequence=told.events[0].sequence + 1)
    assert workers.run(written(told))
    assert not workers.run(written(structs.replace(told, events=[*told.events, other])))
    assert not workers.run(written(told, structs.replace(told, events=[other])))
    assert not workers.run(written(structs.replace(told, events=[structs.replace(told.events[0], at=1)])))
    assert not workers.run(written(told, structs.replace(told, drawn=[structs.replace(drawn, token=drawn.token ^ 1)])))
    assert workers.run(written(structs.replace(told, events=[other], drawn=[drawn])))


def test_a_worker_sweeps_a_draw_of_an_arm_that_it_does_not_know(workers: Workers, key: str) -> None:
    """What was looked up is newer than what the worker remembers: it notices, and does not fail."""
    workers.create(key, [("a", 0.0)], expiry=Expiry(60.0, 0.0))
    workers.submit(key, Ask(None))
    workers.submit(key, AddArm(Arm(0, "b", "b", None, 0.0)), worker=1)
    assert [workers.submit(key, Ask(None), worker=1).arm.key for _ in range(3)].count("b")
    workers.now += 61_000_000
    assert workers.submit(key, Sweep(workers.now)) == 4
    workers.replay(key)


_NEWER: dict[str, Callable[[str], Command[Any]]] = {
    "reward": lambda drawn: Tell(drawn, "reward", 1.0),
    "correction": lambda drawn: Tell(drawn, "correct", 1.0),
    "void": lambda drawn: Tell(drawn, "void", None),
    "batch of rewards": lambda drawn: TellMany([RewardItem(assignment=drawn, reward=1.0)]),
    "reward of a unit": lambda _: TellMany([RewardItem(unit="ann", reward=1.0)]),
    "same unit": lambda _: Ask("ann"),
    "observation": lambda _: Observe([ObservationItem("b", 1.0)]),
    "change of an observation": lambda _: ChangeObservation("of-b", reward=0.0),
    "end": lambda _: LifecycleMove("conclude", "b"),
}


@pytest.mark.parametrize("name", _NEWER)
@pytest.mark.parametrize("together", [False, True])
def test_a_worker_meets_an_arm_that_it_does_not_know(workers: Workers, key: str, name: str, *, together: bool) -> None:
    """Whatever names it is served, alone and behind others of its group."""
    workers.create(key, [("a", 0.0)], sticky=True)
    workers.submit(key, Ask("eve"))
    workers.submit(key, AddArm(Arm(0, "b", "b", None, 0.0)), worker=1)
    workers.submit(key, LifecycleMove("pause"), worker=1)
    workers.submit(key, ChangeArm("a", {"status": "disabled"}), worker=1)
    workers.submit(key, LifecycleMove("resume"), worker=1)
    drawn = workers.submit(key, Ask("ann"), worker=1)
    assert drawn.arm.key == "b"
    assert drawn.assignment is not None
    workers.submit(key, Observe([ObservationItem("b", 1.0, "of-b")]), worker=1)
    commands = [*([Ask("bob"), Ask("kim")] if together else []), _NEWER[name](drawn.assignment.id)]
    for answer in workers.submit_together(key, commands):
        assert not isinstance(answer, BaseException), answer
        assert "not_found" not in str(answer)
    workers.replay(key)
