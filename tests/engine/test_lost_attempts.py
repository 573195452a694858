"""A statement whose sender has gone may land later: whatever becomes of it, a request takes effect once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from service.application.commands.ask import Ask, AskAnswer
from service.application.commands.tell import ObservationItem, Observe
from service.errors import DatabaseUnavailable
from testing.databases import NewDatabase
from testing.postgres import Postgres
from testing.rows import Rows
from testing.tcp_proxy import TcpProxy, postgres_socket
from testing.workers import Workers
from tests.engine.test_writer import another_writer

pytestmark = pytest.mark.process
_GROUP_SECONDS = 1.0


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[TcpProxy]:
    """Between the workers and their database."""
    with TcpProxy(postgres_socket(postgres.folder)) as running:
        yield running


@pytest.fixture
def database_name(postgresql_databases: NewDatabase) -> str:
    """A database of the test's own."""
    return postgresql_databases().partition("?")[0].rpartition("/")[2]


@pytest.fixture
def workers(proxy: TcpProxy, database_name: str) -> Iterator[Workers]:
    """Two workers, whose connections to the database can be cut."""
    running = Workers(proxy.url(database_name))
    yield running
    running.close()


@pytest.fixture
def impatient(proxy: TcpProxy, database_name: str) -> Iterator[Workers]:
    """One that gives a statement up soon."""
    running = Workers(proxy.url(database_name), count=1, group_seconds=_GROUP_SECONDS)
    yield running
    running.close()


async def _waiting(postgres: Postgres, name: str, count: int) -> None:
    """Until so many sessions wait for a lock."""
    query = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND wait_event_type = 'Lock'"
    deadline = time.monotonic() + 60
    while int(await asyncio.to_thread(postgres.sql, query)) < count:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def test_a_group_that_lands_after_its_connection_was_lost_is_not_written_again(
    workers: Workers, proxy: TcpProxy, postgres: Postgres, database_name: str, key: str
) -> None:
    """It waits in the database for a lock while its worker looks for its rows, finds none, and tries again: it counts once."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    workers.submit(key, Ask(None))

    async def lose() -> list[object]:
        async with another_writer(postgres.url(database_name)):
            sent: list[asyncio.Future[Any]] = [
                workers.enqueue(key, Ask(None)),
                workers.enqueue(key, Observe([ObservationItem("a", 1.0, None)])),
            ]
            await _waiting(postgres, database_name, 1)
            proxy.cut_all()
            await _waiting(postgres, database_name, 2)
        return await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), 60)

    asked, told = workers.run(lose())
    assert isinstance(asked, AskAnswer)
    assert asked.assignment is not None
    assert isinstance(told, list)
    with Rows(postgres.url(database_name)) as rows:
        assert [draw for draw, *_ in rows.assignments_of(key)] == [1, 2]
        assert sum(observations for _, _, observations, _ in rows.arms_of(key)) == 1
    assert asked.assignment.draw == 2
    workers.replay(key)


def test_a_database_that_says_nothing_is_given_up(impatient: Workers, proxy: TcpProxy, key: str) -> None:
    """A connection through which nothing passes any more, of which nobody is told; on the next one everything is as before."""
    impatient.create(key, [("a", 0.0), ("b", 0.0)])
    impatient.submit(key, Ask(None))
    for expected in (2, 3):
        proxy.cuts.append("silence")
        answer = impatient.run(asyncio.wait_for(_asked(impatient, key), 30))
        assert answer.assignment is not None
        assert answer.assignment.draw == expected
        assert not proxy.cuts
    proxy.cuts.extend(["silence"] * 30)
    with pytest.raises(DatabaseUnavailable):
        impatient.run(asyncio.wait_for(_asked(impatient, key), 60))
    proxy.cuts.clear()
    impatient.submit(key, Ask(None))
    impatient.replay(key)


async def _asked(workers: Workers, key: str) -> AskAnswer:
    return await workers.enqueue(key, Ask(None))
