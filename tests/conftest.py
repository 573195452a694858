"""What all tests share: databases built by the migrations, one per test or one per server, on both engines."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import httpx
import pytest

from testing.databases import NewDatabase, migrate_now
from testing.json_client import JsonClient, arms
from testing.postgres import Postgres
from testing.rows import Rows
from testing.server import ADMIN_KEY, Server
from testing.workers import Workers

pytest_plugins = ["testing.tiers", "testing.measured", "pytester"]

Engine: TypeAlias = Literal["sqlite", "postgresql"]
_numbers = count(1)
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder with a name of its own is made in it
# A million assignments, and all that the other tests write, in each of two processes.
_MEMORY_NEEDED = 4 * 1024**3


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """The database's engine; every test that uses one runs on both."""
    chosen: Engine = request.param
    return chosen


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the whole run, with a migrated database to copy from."""
    with Postgres() as cluster:
        cluster.sql("CREATE DATABASE template_bestarm")
        migrate_now(cluster.url("template_bestarm"))
        yield cluster


@pytest.fixture(scope="session")
def postgresql_databases(postgres: Postgres) -> NewDatabase:
    """Makes databases of the PostgreSQL."""
    return lambda: postgres.copy_of("template_bestarm", f"test_{next(_numbers)}")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy from."""
    path = tmp_path_factory.mktemp("template") / "bestarm.db"
    migrate_now(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def sqlite_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where SQLite files are: in memory if there is room, since the tests kill the service, never the machine."""
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _MEMORY_NEEDED:
        yield tmp_path_factory.mktemp("sqlite")
        return
    with TemporaryDirectory(prefix="bestarm-", dir=_MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def sqlite_databases(sqlite_template: Path, sqlite_folder: Path) -> NewDatabase:
    """Makes SQLite files."""

    def new_file() -> str:
        copied = sqlite_folder / str(next(_numbers)) / "bestarm.db"
        copied.parent.mkdir()
        shutil.copy(sqlite_template, copied)
        return f"sqlite:///{copied}"

    return new_file


@pytest.fixture(scope="session")
def new_database(request: pytest.FixtureRequest, engine: Engine) -> NewDatabase:
    """Makes empty, migrated databases of the engine."""
    made: NewDatabase = request.getfixturevalue(f"{engine}_databases")
    return made


@pytest.fixture
def database_url(new_database: NewDatabase) -> str:
    """A database for this test alone."""
    return new_database()


def _serve(database_url: str, *, measured: bool = False, key: str | None = None) -> Iterator[Server]:
    """A service that must not have met anything unexpected when it ends."""
    with Server(database_url, measured=measured, key=key) as running:
        yield running
        logged = running.log.read_text()
    assert "Traceback" not in logged, logged


@pytest.fixture(scope="session")
def sqlite_server(sqlite_databases: NewDatabase) -> Iterator[Server]:
    """The shared service on SQLite; it stays while tests of the other engine take their turn."""
    yield from _serve(sqlite_databases())


@pytest.fixture(scope="session")
def postgresql_server(postgresql_databases: NewDatabase) -> Iterator[Server]:
    """The shared service on PostgreSQL. Coverage follows this one alone: what is of SQLite is seen where no service is needed."""
    yield from _serve(postgresql_databases(), measured=True)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, engine: Engine) -> Server:
    """A running service that tests share; they keep apart by the keys of their experiments."""
    running: Server = request.getfixturevalue(f"{engine}_server")
    return running


@pytest.fixture(scope="session")
def untraced_postgresql_server(postgresql_databases: NewDatabase) -> Iterator[Server]:
    """Another one on PostgreSQL, which coverage does not follow."""
    yield from _serve(postgresql_databases())


@pytest.fixture(scope="session")
def untraced_server(request: pytest.FixtureRequest, engine: Engine) -> Server:
    """A shared service that coverage never slows down, for tests that send it thousands of requests."""
    running: Server = request.getfixturevalue("sqlite_server" if engine == "sqlite" else "untraced_postgresql_server")
    return running


@pytest.fixture(scope="session")
def api(server: Server) -> Iterator[httpx.Client]:
    """An HTTP client of the shared service."""
    with server.client() as client:
        yield client


@pytest.fixture(scope="session")
def wire(server: Server) -> Iterator[JsonClient]:
    """A fast JSON client of the shared service."""
    with JsonClient(server.url) as connection:
        yield connection


@pytest.fixture(scope="session")
def keyed_server(new_database: NewDatabase, engine: Engine) -> Iterator[Server]:
    """A running service that tests share which have to do with keys: it has an administrator's."""
    yield from _serve(new_database(), measured=engine == "postgresql", key=ADMIN_KEY)


@pytest.fixture(scope="session")
def keyed_wire(keyed_server: Server) -> Iterator[JsonClient]:
    """A fast JSON client of that service, with the administrator's key."""
    with JsonClient(keyed_server.url, key=keyed_server.key) as connection:
        yield connection


@pytest.fixture(scope="session")
def rows(server: Server) -> Iterator[Rows]:
    """The shared service's database, read directly."""
    with Rows(server.database_url) as database:
        yield database


@pytest.fixture
def experiment(wire: JsonClient, key: str) -> str:
    """The key of a running experiment with two arms."""
    wire.create(key, arms=arms(2))
    return key


@pytest.fixture
def key() -> str:
    """A key that no other test uses."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def workers(database_url: str) -> Iterator[Workers]:
    """Two workers in this process, on a database of their own."""
    running = Workers(database_url)
    yield running
    running.close()
