"""Behind a new connection may be another server: what this process remembers of the one before is not true of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from service.application.commands.ask import Ask
from service.application.commands.tell import Tell
from service.engine.queue import Command
from testing.databases import NewDatabase
from testing.postgres import Postgres
from testing.workers import Workers

pytestmark = pytest.mark.process


@pytest.fixture
def database_name(postgresql_databases: NewDatabase) -> str:
    """A database of the test's own."""
    return postgresql_databases().partition("?")[0].rpartition("/")[2]


@pytest.fixture
def workers(postgres: Postgres, database_name: str) -> Iterator[Workers]:
    """Two workers on a database that can fall back to an earlier state."""
    running = Workers(postgres.url(database_name))
    yield running
    running.close()


def _fall_back(postgres: Postgres, name: str, earlier: str) -> None:
    """All connections are lost, and those that follow lead to what was there before."""
    postgres.drop_connections(name)
    postgres.sql(f"DROP DATABASE {name}")
    postgres.sql(f"ALTER DATABASE {earlier} RENAME TO {name}")


@pytest.mark.parametrize("asks", [1, 20])
def test_a_version_that_comes_twice_is_two_versions(
    workers: Workers, postgres: Postgres, database_name: str, key: str, asks: int
) -> None:
    """A standby that was behind takes over, and the other worker brings it to the version that this one remembers."""
    workers.create(key, [("a", 0.0), ("b", 0.0), ("c", 0.0)])
    before = workers.submit(key, Ask("before")).assignment
    postgres.drop_connections(database_name)
    postgres.copy_of(database_name, f"{database_name}_earlier")
    lost = workers.submit_together(key, [Ask(f"lost {number}") for number in range(4)])
    assert [one.assignment.draw for one in lost] == [2, 3, 4, 5]
    _fall_back(postgres, database_name, f"{database_name}_earlier")
    assert before is not None
    other: list[Command[Any]] = [Tell(before.id, "reward", 1.0), *(Ask(f"other {number}") for number in range(3))]
    told = workers.submit_together(key, other, worker=1)
    assert [one.assignment.draw for one in told] == [1, 2, 3, 4]
    drawn = workers.submit_together(key, [Ask(f"after {number}") for number in range(asks)])
    assert [one.assignment.draw for one in drawn] == list(range(5, 5 + asks))
    workers.replay(key)
