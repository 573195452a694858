"""Versions are read by one statement for all who ask, and nobody is harmed by what another asks for."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from service.application.live.versions import Versions
from service.application.live.watcher import Watcher
from service.domain import ExperimentVersion
from service.errors import DatabaseUnavailable, ExperimentNotFound
from service.storage.database import Database
from testing.postgres import Postgres
from testing.workers import Workers

_MADE_BAD = """
ALTER TABLE experiments RENAME TO stored_experiments;
CREATE VIEW experiments AS SELECT key, 7 AS id, CASE WHEN key = 'bad' THEN 1 / (version - version) ELSE version END AS version
FROM (VALUES ('good', 1), ('bad', 2), ('also-good', 3)) AS made(key, version)
"""


async def _ask_together(database: Database, keys: list[str]) -> list[object]:
    versions = Versions(database)
    return await asyncio.gather(*(versions.current(key) for key in keys), return_exceptions=True)


@pytest.fixture
def with_a_bad_one(postgres: Postgres) -> str:
    """A PostgreSQL that refuses any statement that touches the experiment `bad`."""
    name = "with_a_bad_one"
    postgres.sql(f"DROP DATABASE IF EXISTS {name}")
    postgres.sql(f"CREATE DATABASE {name} TEMPLATE template_bestarm")
    postgres.sql(_MADE_BAD, name)
    return postgres.url(name)


def test_one_bad_experiment_harms_nobody_else(with_a_bad_one: str) -> None:
    """A shared statement that fails is tried again one by one."""

    async def asked() -> list[object]:
        database = Database(with_a_bad_one)
        try:
            return await _ask_together(database, ["good", "bad", "also-good", "none"])
        finally:
            await database.close()

    good, bad, also_good, none = asyncio.run(asked())
    assert (good, also_good) == ((7, 1), (7, 3))
    assert "division by zero" in str(bad)
    assert isinstance(none, ExperimentNotFound)


def test_one_bad_experiment_ends_no_other_s_stream(with_a_bad_one: str) -> None:
    """Its own viewers are let go, and told when they come back."""

    async def watched() -> list[list[ExperimentVersion | None]]:
        database = Database(with_a_bad_one)
        watcher = Watcher(Versions(database), every_seconds=0.02)
        watcher.start()

        async def seen(key: str, at_most: int) -> list[ExperimentVersion | None]:
            found = []
            async with aclosing(watcher.follow(key, ExperimentVersion(7, 0))) as versions:
                async for version in versions:
                    found.append(version)
                    if len(found) == at_most:
                        break
            return found

        try:
            async with asyncio.timeout(30):
                return list(await asyncio.gather(seen("good", 2), seen("bad", 2), seen("also-good", 2)))
        finally:
            await watcher.close()
            await database.close()

    assert asyncio.run(watched()) == [[(7, 0), (7, 1)], [(7, 0)], [(7, 0), (7, 3)]]


def test_a_database_that_is_away_is_said_to_be(postgres: Postgres) -> None:
    """To everybody who asks."""

    async def asked() -> list[object]:
        database = Database(postgres.url("nobody_made_this"))
        try:
            return await _ask_together(database, ["one", "two", "three"])
        finally:
            await database.close()

    answers = asyncio.run(asked())
    assert all(isinstance(answer, DatabaseUnavailable) for answer in answers)


def test_who_hangs_up_takes_nobody_along(workers: Workers) -> None:
    """Of those who share a statement, one goes before it is answered, and one before it is asked."""
    workers.create("healthy", [("a", 0), ("b", 0)])

    async def asked() -> list[object]:
        versions = Versions(workers.contexts[0].database)
        askers = [asyncio.create_task(versions.current("healthy")) for _ in range(6)]
        await asyncio.sleep(0)
        askers[0].cancel()
        late = asyncio.create_task(versions.current("healthy"))
        await asyncio.sleep(0)
        askers[3].cancel()
        late.cancel()
        answers: list[object] = list(await asyncio.gather(*askers, late, return_exceptions=True))
        await versions.current("healthy")  # nothing is asked for any more when the database is closed
        return answers

    answers = workers.run(asked())
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [True, False, False, True, False, False, True]
    assert {answer for answer in answers if isinstance(answer, tuple)} == {(1, 1)}


@pytest.mark.parametrize("text", ["\x00", "a\x00", "\ud800", "", "ä", "A", "a" * 65, "'; DROP TABLE experiments; --", "a\n"])
def test_hostile_texts_and_a_healthy_experiment(workers: Workers, text: str) -> None:
    """What cannot be a key is not found, and whoever asks at the same moment is answered."""
    workers.create("healthy", [("a", 0), ("b", 0)])
    answers = workers.run(_ask_together(workers.contexts[0].database, [text, "healthy"] * 20))
    assert answers[1::2] == [(1, 1)] * 20
    assert all(isinstance(answer, ExperimentNotFound) for answer in answers[::2])
