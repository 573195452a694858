"""A fault that found nothing to break says so: it does not count."""

from __future__ import annotations

import asyncio
from random import Random

import asyncpg
import pytest

from testing.databases import NewDatabase
from testing.postgres import Postgres
from testing.torture.fault import Injection
from testing.torture.postgres_faults import drop_connections, kill_backend
from testing.torture.process_faults import kill_worker, stop_worker
from testing.torture.stage import Service, Stage

_DATABASE = "torture"
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def stage(sqlite_databases: NewDatabase) -> Stage:
    """A stage whose service has stopped: there is no worker to kill."""
    url = sqlite_databases()
    service = Service(url)
    try:
        empty = Stage("sqlite", url, [service])
    finally:
        service.close()
    empty.services.clear()
    return empty


def test_without_workers_none_is_killed_or_stopped(stage: Stage) -> None:
    """As between the death of the last one and its successor."""
    assert [_breaks(fault, stage) for fault in (kill_worker, stop_worker)] == [False, False]


def test_without_sessions_none_is_ended(stage: Stage, postgres: Postgres) -> None:
    """With one, there is something to break."""
    stage.postgres = postgres
    postgres.sql(f"CREATE DATABASE {_DATABASE}")
    try:
        assert [_breaks(fault, stage) for fault in (kill_backend, drop_connections)] == [False, False]
        assert asyncio.run(_breaks_with_a_session(stage, postgres.url(_DATABASE)))
    finally:
        postgres.drop_connections(_DATABASE)
        postgres.sql(f"DROP DATABASE {_DATABASE}")


async def _breaks_with_a_session(stage: Stage, url: str) -> bool | None:
    session = await asyncpg.connect(url)
    try:
        return _breaks(drop_connections, stage)
    finally:
        session.terminate()


def _breaks(fault: Injection, stage: Stage) -> bool | None:
    return fault(stage, Random(1), 0.0)  # noqa: S311 - it plays
