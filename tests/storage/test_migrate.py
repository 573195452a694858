"""The migrations build exactly the tables that the code declares, up and down, on both databases."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from service.application.commands.ask import Ask
from service.application.commands.delete import delete
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.observations import ChangeObservation
from service.application.commands.tell import ObservationItem, Observe
from service.domain.callers import by_service
from service.storage.database import Database
from service.storage.migrate import current, head
from service.storage.schema_compatibility import TABLE
from service.storage.tables import metadata
from testing.databases import NewDatabase, migrate_now
from testing.postgres import Postgres
from testing.rows import Rows
from testing.workers import Workers


def alembic(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the `alembic` command on a database."""
    environment = os.environ | {"BESTARM_DATABASE_URL": url}
    command = [sys.executable, "-m", "alembic", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


async def tables_of(url: str) -> tuple[set[str], str | None]:
    """The names of all tables, and the revision."""
    database = Database(url)
    try:
        async with database.reading() as connection:
            names = await connection.run_sync(lambda sync: set(inspect(sync).get_table_names()))
            return names, await current(connection)
    finally:
        await database.close()


@pytest.fixture(scope="session")
def spare(new_database: NewDatabase) -> str:
    """A database for these tests alone."""
    return new_database()


def test_the_head_by_the_names_of_the_files_is_alembics() -> None:
    """Each file begins with its revision, and these are in the order in which they build on each other."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))
    in_order = [
        (one.revision, Path(one.path).name.partition("_")[0]) for one in ScriptDirectory.from_config(config).walk_revisions()
    ]
    assert in_order == sorted(in_order, reverse=True)
    assert in_order[0] == (head(), head())
    assert all(revision == in_the_name for revision, in_the_name in in_order)


@pytest.mark.process
def test_the_tables_are_those_that_the_code_declares(spare: str) -> None:
    """`alembic check` finds nothing to migrate."""
    checked = alembic(spare, "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.process
def test_a_migration_keeps_nobody_waiting_for_long(postgres: Postgres) -> None:
    """While an export holds a table that it has to change, it tries again and again, and others write between its tries."""
    url = postgres.copy_of("template_bestarm", "locked_migration")
    assert alembic(url, "downgrade", "0017").returncode == 0
    exported = "BEGIN; SELECT 1 FROM assignments; SELECT pg_sleep(7); COMMIT"
    exporting = threading.Thread(target=postgres.sql, args=(exported, "locked_migration"))
    exporting.start()
    time.sleep(0.5)
    migrating = threading.Thread(target=migrate_now, args=(url,))
    migrating.start()
    waited = []
    while migrating.is_alive():
        began = time.monotonic()
        postgres.sql("BEGIN; LOCK TABLE assignments IN ROW EXCLUSIVE MODE; COMMIT", "locked_migration")
        waited.append(time.monotonic() - began)
        time.sleep(0.1)
    exporting.join()
    assert asyncio.run(tables_of(url))[1] == head()
    assert max(waited) < 5, "less than the export took"


@pytest.mark.process
def test_down_and_up_again(spare: str) -> None:
    """Going down leaves nothing behind; going up builds everything again, once, from three places at the same time."""
    down = alembic(spare, "downgrade", "base")
    assert down.returncode == 0, down.stderr
    names, revision = asyncio.run(tables_of(spare))
    assert (names - {"alembic_version"}, revision) == (set(), None)
    environment = os.environ | {"BESTARM_DATABASE_URL": spare}
    migrating = [subprocess.Popen([sys.executable, "-m", "service", "migrate"], env=environment) for _ in range(3)]
    assert [process.wait(60) for process in migrating] == [0, 0, 0]
    names, revision = asyncio.run(tables_of(spare))
    assert (names - {"alembic_version", TABLE}, revision) == (set(metadata.tables), head())


@pytest.mark.process
def test_going_down_counts_what_was_left_out(new_database: NewDatabase) -> None:
    """Lone draws stand beside the rows of their arms; the release before knows the rows only."""
    url = new_database()
    workers = Workers(url)
    workers.create("lone", [("a", 0.0), ("b", 0.0)])
    for _ in range(3):
        workers.submit("lone", Ask(None))
    workers.close()
    with Rows(url) as rows:
        assert rows.query("SELECT sum(pending) FROM arms") == [(0,)]
        down = alembic(url, "downgrade", "0003")
        assert down.returncode == 0, down.stderr
        assert rows.query("SELECT pending, epoch_draws FROM arms ORDER BY pending") == [(1, 1), (2, 2)]
    up = alembic(url, "upgrade", "head")
    assert up.returncode == 0, up.stderr
    again = Workers(url)
    assert [one.pending for one in again.look("lone").standings] in ([1, 2], [2, 1])
    assert again.replay("lone") == 4
    again.close()


@pytest.mark.process
def test_going_down_finishes_deletions(new_database: NewDatabase) -> None:
    """The release before would show what is on its way out; what stays is rebuilt whole, there and back."""
    url = new_database()
    workers = Workers(url)
    for key in ("kept", "gone"):
        workers.create(key, [("a", 0.0), ("b", 0.0)])
        workers.submit(key, Ask(None))
    workers.submit("gone", LifecycleMove("conclude", "a"))
    workers.submit("gone", LifecycleMove("archive"))
    workers.run(delete(workers.contexts[0], by_service("gone"), "gone"))
    workers.close()
    with Rows(url) as rows:
        down = alembic(url, "downgrade", "0009")
        assert down.returncode == 0, down.stderr
        for table, left in (("experiments", 1), ("arms", 2), ("assignments", 1), ("events", 2)):
            assert rows.query(f"SELECT count(*) FROM {table}") == [(left,)], table
    up = alembic(url, "upgrade", "head")
    assert up.returncode == 0, up.stderr
    again = Workers(url)
    assert again.replay("kept") == 2
    again.close()


@pytest.mark.process
def test_what_was_imported_before_is_counted(new_database: NewDatabase) -> None:
    """By a migration, from the history: observations with an id and without, voided ones left out; replay agrees."""
    url = new_database()
    workers = Workers(url)
    for key in ("told", "asked"):
        workers.create(key, [("a", 0.0), ("b", 0.0)])
    workers.submit("asked", Ask(None))
    named = [ObservationItem("a", 1.0, f"id-{number}") for number in range(5)]
    workers.submit("told", Observe([*named, ObservationItem("b", 0.0)]))
    workers.submit("told", ChangeObservation("id-2", void=True))
    workers.close()
    with Rows(url) as rows:
        counted = rows.query("SELECT key, imported FROM experiments ORDER BY key")
        assert counted == [("asked", 0), ("told", 5)]
        assert alembic(url, "downgrade", "0014").returncode == 0
    assert alembic(url, "upgrade", "head").returncode == 0
    with Rows(url) as rows:
        assert rows.query("SELECT key, imported FROM experiments ORDER BY key") == counted
    again = Workers(url)
    assert again.replay("told") == 8
    assert again.look("told").progress.imported == 5
    again.close()
