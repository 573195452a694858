"""The recipes of docs/backup.md, run as printed: each ends in a replay that finds what was there at its moment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.application.commands.ask import Ask, AskMany
from service.application.commands.tell import Tell
from testing.databases import NewDatabase, migrate_now
from testing.postgres import Postgres
from testing.varied_experiment import write_varied
from testing.workers import Workers
from tests.docs.texts import blocks_of, text_of

pytestmark = pytest.mark.process

_PRINTED_TIME = "2026-01-09 12:00:00+00"


def commands(heading: str) -> list[str]:
    """The commands below a heading of the page."""
    sections = text_of("docs/backup.md").split("\n## ")
    section = next(one for one in sections if one.startswith(f"{heading}\n"))
    return [content for language, content in blocks_of(section) if language == "sh"]


class Shell:
    """Runs the page's commands in a folder, `bestarm` and PostgreSQL's own programs at hand."""

    def __init__(self, folder: Path, postgres: Postgres | None = None, **environment: str) -> None:
        self.folder, self._postgres = folder, postgres
        programs = folder / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "bestarm").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m service "$@"\n')
        (programs / "bestarm").chmod(0o755)
        path = [str(programs), *([] if postgres is None else [str(postgres.binaries)]), os.environ["PATH"]]
        located = {} if postgres is None else {"PGHOST": str(postgres.folder), "PGUSER": "bestarm"}
        repository = {"PYTHONPATH": str(Path(__file__).parents[2])}
        self.environment = os.environ | repository | located | environment | {"PATH": os.pathsep.join(path)}

    def paste(self, block: str, **replaced: str) -> str:
        """What the block prints. What is not bestarm's runs as the user that PostgreSQL runs as."""
        for printed, real in replaced.items():
            block = block.replace(printed, real)
        owner = None if "bestarm " in block or self._postgres is None else self._postgres.owner
        user, group = owner or (None, None)
        done = subprocess.run(
            ["bash", "-euc", block],  # noqa: S607 - the reader's own bash
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
            user=user,
            group=group,
        )
        logged = [path.read_text()[-2_000:] for path in self.folder.glob("*.log")]
        assert done.returncode == 0, (block, done.stdout, done.stderr, logged)
        return done.stdout


def write_past(workers: Workers) -> dict[str, int]:
    """Two experiments; how many events each has."""
    write_varied(workers, "checkout-button")
    workers.create("other", [("a", 0.0), ("b", 0.0)])
    workers.submit("other", AskMany([None] * 50, by_count=True))
    return {key: workers.replay(key) for key in ("checkout-button", "other")}


def lines_of(counts: dict[str, int]) -> str:
    """What replay prints of experiments with so many events."""
    return "".join(f"{key}: {events:,} events replayed, no difference.\n" for key, events in counts.items())


def write_on(workers: Workers) -> None:
    """What no backup from before has."""
    drawn = workers.submit("other", Ask(None)).assignment
    assert drawn is not None
    workers.submit("other", Tell(drawn.id, "reward", 1.0))


@pytest.fixture
def archiving() -> Iterator[Postgres]:
    """A PostgreSQL that archives its log, with a migrated database."""
    archive = "test ! -f ../archive/%f && cp %p ../archive/%f"
    with Postgres(archive_mode="on", archive_command=archive) as cluster:
        cluster.sql("CREATE DATABASE bestarm")
        migrate_now(cluster.url("bestarm"))
        yield cluster


def test_the_embedded_database_comes_back(sqlite_databases: NewDatabase, tmp_path: Path) -> None:
    """Copied while it is in use, overwritten by what happened since, restored: as it was."""
    database = tmp_path / "bestarm.db"
    shutil.move(sqlite_databases().removeprefix("sqlite:///"), database)
    workers = Workers(f"sqlite:///{database}")
    past = write_past(workers)
    shell = Shell(tmp_path, BESTARM_DATABASE_URL="sqlite:///bestarm.db")
    backup, restore = commands("The embedded database")
    shell.paste(backup)
    write_on(workers)
    workers.close()
    assert shell.paste(restore) == lines_of(past)


def test_a_dump_of_postgresql_comes_back(postgres: Postgres, postgresql_databases: NewDatabase, tmp_path: Path) -> None:
    """Dumped while it is in use, restored beside it: as it was at the moment of the dump."""
    url = postgresql_databases()
    name = url.partition("@/")[2].partition("?")[0]
    workers = Workers(url)
    past = write_past(workers)
    shell = Shell(postgres.workplace("dump"), postgres)
    dump, restore, prove = commands("PostgreSQL: pg_dump")
    shell.paste(dump, **{" bestarm\n": f" {name}\n"})
    write_on(workers)
    workers.close()
    shell.paste(restore)
    try:
        assert shell.paste(prove) == lines_of(past)
    finally:
        postgres.sql("DROP DATABASE restored")
    assert tmp_path.exists()


def test_postgresql_comes_back_to_any_moment(archiving: Postgres) -> None:
    """What was acknowledged before the moment is there, what came after it is not; a base backup from long before leads there."""
    (archive := archiving.workplace("archive")).chmod(0o777)
    place = archiving.workplace("restore")
    shell = Shell(place, archiving)
    base, restore, prove = commands("PostgreSQL: to any moment")
    workers = Workers(archiving.url("bestarm"))
    shell.paste(base)
    past = write_past(workers)
    time.sleep(0.01)
    moment = archiving.sql("SELECT clock_timestamp()", "bestarm")
    time.sleep(0.01)
    write_on(workers)
    workers.close()
    archiving.sql("SELECT pg_switch_wal()", "bestarm")
    _wait_until_archived(archiving, archive)
    # What the server of the tests is told by its command line, others have in the configuration that the base backup has.
    options = f"-p 5433 -k {place} " + " ".join(
        f"-c {name}={archiving.settings[name]}" for name in ("max_connections", "listen_addresses")
    )
    located = {_PRINTED_TIME: moment, "/archive/": f"{archive}/", "-p 5433": options}
    shell.paste(restore, **located)
    try:
        shell.environment["PGHOST"] = str(place)
        assert shell.paste(prove) == lines_of(past)
    finally:
        shell.environment["PGHOST"] = str(archiving.folder)
        shell.paste("pg_ctl --pgdata=restored --mode=immediate --wait stop")


def _wait_until_archived(cluster: Postgres, archive: Path) -> None:
    last = cluster.sql("SELECT pg_walfile_name(pg_current_wal_lsn() - 1)", "bestarm")
    deadline = time.monotonic() + 60
    while not any(path.name >= last for path in archive.iterdir() if len(path.name) == len(last)):
        assert time.monotonic() < deadline, list(archive.iterdir())
        time.sleep(0.05)


def test_one_experiment_moves_up(sqlite_databases: NewDatabase, postgres: Postgres, postgresql_databases: NewDatabase) -> None:
    """Dumped out of the embedded database and loaded into a PostgreSQL."""
    workers = Workers(sqlite_databases())
    past = write_past(workers)
    workers.close()
    url = postgresql_databases()
    shell = Shell(postgres.workplace("copy"), postgres, BESTARM_DATABASE_URL=workers.url)
    dump, load = commands("One experiment, into another database")
    shell.paste(dump)
    shell.paste(load, **{"postgresql:///bestarm": f"'{url}'"})
    copied = Workers(url)
    assert copied.replay("checkout-button") == past["checkout-button"]
    copied.close()


def test_every_recipe_is_run() -> None:
    """A section with commands that no test here runs would not be known to work."""
    sections = text_of("docs/backup.md").split("\n## ")[1:]
    with_commands = [one.partition("\n")[0] for one in sections if "```sh" in one]
    assert with_commands == [
        "The embedded database",
        "PostgreSQL: pg_dump",
        "PostgreSQL: to any moment",
        "One experiment, into another database",
    ]
