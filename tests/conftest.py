"""What all tests share: databases built by the migrations, one per test or one per server, on both engines."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest

from service.storage.database import Database
from service.storage.migrating import migrate
from tests.support.postgres import Postgres
from tests.support.rows import Rows
from tests.support.server import Server
from tests.support.wire import Wire, arms

NewDatabase: TypeAlias = Callable[[], str]
_numbers = count(1)


def migrate_now(url: str) -> None:
    """Bring a database to the newest schema, in an event loop of its own."""

    async def run() -> None:
        database = Database(url)
        await migrate(database)
        await database.close()

    asyncio.run(run())


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the whole run, with a migrated database to copy from."""
    cluster = Postgres()
    cluster.sql("CREATE DATABASE template_bestarm")
    migrate_now(cluster.url("template_bestarm"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy from."""
    path = tmp_path_factory.mktemp("template") / "bestarm.db"
    migrate_now(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    """Makes empty, migrated databases; every test that uses it runs on both engines."""
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("sqlite_template")

        def new_file() -> str:
            copied = tmp_path_factory.mktemp("sqlite") / "bestarm.db"
            shutil.copy(template, copied)
            return f"sqlite:///{copied}"

        return new_file
    cluster: Postgres = request.getfixturevalue("postgres")

    def new_in_cluster() -> str:
        name = f"test_{next(_numbers)}"
        cluster.sql(f"CREATE DATABASE {name} TEMPLATE template_bestarm")
        return cluster.url(name)

    return new_in_cluster


@pytest.fixture
def database_url(new_database: NewDatabase) -> str:
    """A database for this test alone."""
    return new_database()


@pytest.fixture(scope="session")
def server(new_database: NewDatabase) -> Iterator[Server]:
    """A running service that tests share; they keep apart by the keys of their experiments."""
    with Server(new_database()) as running:
        yield running
        logged = running.log.read_text()
    assert "Traceback" not in logged, logged


@pytest.fixture(scope="session")
def api(server: Server) -> Iterator[httpx.Client]:
    """An HTTP client of the shared service."""
    with server.client() as client:
        yield client


@pytest.fixture(scope="session")
def wire(server: Server) -> Iterator[Wire]:
    """A fast JSON client of the shared service."""
    with Wire(server.url) as connection:
        yield connection


@pytest.fixture(scope="session")
def rows(server: Server) -> Iterator[Rows]:
    """The shared service's database, read directly."""
    with Rows(server.database_url) as database:
        yield database


@pytest.fixture
def experiment(wire: Wire, key: str) -> str:
    """The key of a running experiment with two arms."""
    wire.create(key, arms=arms(2))
    return key


@pytest.fixture
def key() -> str:
    """A key that no other test uses."""
    return f"test-{next(_numbers)}"
