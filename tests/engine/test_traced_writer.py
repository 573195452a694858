"""What is noted of groups: in order, within each other, of every request, under a lock as without; and nothing is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TypeVar

import pytest

from service.application.commands.ask import Ask, AskAnswer
from service.domain.callers import SERVICE, by_service
from service.engine.queue import FutureRecipient
from service.engine.traced_writer import RequestTimeline, TracedWriter, timelines_of_request
from service.errors import ExperimentLocked
from service.storage.database import Database
from testing.databases import NewDatabase
from testing.workers import Workers

Result = TypeVar("Result")


@asynccontextmanager
async def _traced(url: str) -> AsyncIterator[TracedWriter]:
    """A third worker beside the two, watched."""
    database = Database(url, pool_size=2)
    writer = TracedWriter(database, queue_limit=64)
    writer.start()
    yield writer
    await writer.close()
    await database.close()


async def _noted(doing: Callable[[], Awaitable[Result]]) -> tuple[Result, list[RequestTimeline]]:
    """What comes of it, and what was noted of the requests that it queued."""
    timelines: list[RequestTimeline] = []
    before = timelines_of_request.set(timelines)
    try:
        return await doing(), timelines
    finally:
        timelines_of_request.reset(before)


def _require_in_order(timeline: RequestTimeline) -> list[str]:
    """The names of what its group did, one after the other."""
    group = timeline.group
    assert group is not None
    times = [timeline.queued, max(group.taken, timeline.queued)]
    for _, began, ended in group.phases:
        times += [began, ended]
    assert all(before <= after for before, after in pairwise(times[1:]))
    return [name for name, _, _ in group.phases]


@pytest.fixture
def hot(workers: Workers, key: str) -> str:
    """The key of an experiment that two other workers know."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    for worker in (0, 1):
        workers.submit(key, Ask(None), worker)
    return key


def test_what_is_not_known_is_looked_up_and_what_is_known_is_not(workers: Workers, hot: str) -> None:
    """Then it is decided and written, and no request is remembered."""

    async def run() -> list[list[str]]:
        async with _traced(workers.url) as writer:
            found = []
            for _ in range(2):
                answer, timelines = await _noted(lambda: writer.submit(by_service(hot), Ask(None)))
                assert answer.created
                found.append(_require_in_order(timelines[0]))
            assert not writer._timelines  # noqa: SLF001 - it is what would leak
            return found

    first, second = workers.run(run())
    assert first[-2:] == second == ["decide", "write"]
    assert set(first[:-2]) == {"look up"}


def test_a_group_that_was_outrun_notes_both_tries(workers: Workers, hot: str) -> None:
    """What came to nothing, and what it did under the lock; and requests that share it share its times."""

    async def run() -> list[RequestTimeline]:
        async with _traced(workers.url) as writer:
            await writer.submit(by_service(hot), Ask(None))
            await workers.contexts[0].writer.submit(by_service(hot), Ask(None))

            async def three() -> list[AskAnswer]:
                return await asyncio.gather(*(writer.submit(by_service(hot), Ask(None)) for _ in range(3)))

            answers, timelines = await _noted(three)
            draws = [answer.assignment.draw for answer in answers if answer.assignment]
            assert sorted(draws) == [5, 6, 7]
            return timelines

    timelines = workers.run(run())
    assert len(timelines) == 3
    assert timelines[0].group is timelines[1].group is timelines[2].group
    assert timelines[0].group is not None
    assert timelines[0].group.requests == 3
    names = _require_in_order(timelines[0])
    assert names[:2] == ["decide", "write"]
    assert names[-2:] == ["decide", "write"]
    assert "look up" in names[2:-2]
    workers.replay(hot)


def test_who_leaves_is_not_remembered(workers: Workers, hot: str) -> None:
    """A request whose caller is gone before its turn is dropped by the queue, and its times with it."""

    async def run() -> None:
        async with _traced(workers.url) as writer:
            answer: FutureRecipient[AskAnswer] = FutureRecipient(loop=asyncio.get_running_loop())
            writer.enqueue(SERVICE, hot, Ask(None), answer)
            assert writer.timeline_of(answer) is not None
            answer.cancel()
            await writer.submit(by_service(hot), Ask(None))
            assert not writer._timelines  # noqa: SLF001 - it is what would leak

    workers.run(run())


class _Waiting:
    """Waits for an outcome as a connection does: it is no future that could say when it is over."""

    has_disconnected = False

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.answered = asyncio.Event()

    def prepare(self, _result: object) -> None:
        """It has nothing to put into words."""

    def set_result(self, _result: object) -> None:
        """It took effect."""
        self.answered.set()

    def set_exception(self, failure: Exception) -> None:
        """It was refused."""
        self.failure = failure
        self.answered.set()


def test_what_is_refused_for_a_lock_is_not_remembered(postgresql_databases: NewDatabase, key: str) -> None:
    """Somebody else holds the experiment's row, and the writer has found that out before."""
    workers = Workers(postgresql_databases())
    workers.create(key, [("a", 0.0), ("b", 0.0)])

    async def run() -> None:
        other = Database(workers.url, pool_size=1)
        async with _traced(workers.url) as writer:
            await writer.submit(by_service(key), Ask(None))
            async with other.writing() as connection:
                await connection.exec_driver_sql("SELECT 1 FROM experiments FOR UPDATE")
                writer._contention.note_locked({key})  # noqa: SLF001 - as after five seconds of waiting
                waiting = _Waiting()
                writer.enqueue(SERVICE, key, Ask(None), waiting)
                await waiting.answered.wait()
            assert isinstance(waiting.failure, ExperimentLocked)
            assert not writer._timelines  # noqa: SLF001 - it is what would leak
        await other.close()

    workers.run(run())
    workers.close()
