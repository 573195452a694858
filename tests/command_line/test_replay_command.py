"""`bestarm replay` of one experiment, and of all."""

from __future__ import annotations

import pytest

from service.application.commands.ask import AskMany
from testing.databases import NewDatabase
from testing.program import typed
from testing.workers import Workers


def test_all_are_replayed_and_each_has_its_line(new_database: NewDatabase) -> None:
    """Exit code 0 if none differs; 1 if one does, and the others are told all the same."""
    workers = Workers(new_database())
    for key in ("one", "two", "three"):
        workers.create(key, [("a", 0.0), ("b", 0.0)])
        workers.submit(key, AskMany([None] * 5, by_count=True))
    clean = typed("replay", "--all", on=workers.url)
    lines = [f"{key}: 6 events replayed, no difference." for key in ("one", "two", "three")]
    assert (clean.returncode, clean.stdout.splitlines(), clean.stderr) == (0, lines, "")

    async def edit() -> None:
        async with workers.contexts[0].database.writing() as connection:
            await connection.exec_driver_sql("UPDATE experiments SET name = 'forged' WHERE key = 'two'")

    workers.run(edit())
    workers.close()
    found = typed("replay", "--all", on=workers.url)
    assert found.returncode == 1
    assert [line.partition(":")[0] for line in found.stdout.splitlines()] == ["one", "two", "three"]
    assert "two: The experiment: experiment.name is stored as 'forged'" in found.stdout


@pytest.mark.parametrize("arguments", [(), ("one", "--all")])
def test_one_or_all_must_be_said(arguments: tuple[str, ...]) -> None:
    """A sentence, before anything is opened."""
    refused = typed("replay", *arguments, on="sqlite:///none.db")
    assert (refused.returncode, refused.stderr) == (2, "Cannot replay: Name an experiment, or pass --all.\n")
