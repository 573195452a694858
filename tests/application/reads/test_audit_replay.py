"""Of a pruned experiment replay still checks what people did, what was found, and that no sum has changed since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from service.application.commands.arms import ChangeArm
from service.application.commands.experiments import Patch
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.prune import prunable, prune
from service.application.reads.differences import Difference
from testing.databases import NewDatabase
from testing.varied_experiment import write_varied
from testing.workers import Workers

_KEY = "pruned"


class Edited:
    """A pruned experiment, and a way to edit its rows by hand."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

    def write(self, statement: str, **values: Any) -> None:  # noqa: ANN401 - any parameter
        """Edit."""

        async def change() -> None:
            async with self.workers.contexts[0].database.writing() as connection:
                await connection.execute(text(statement), values)

        self.workers.run(change())

    def read(self, statement: str) -> list[Any]:
        """Rows that are there."""

        async def find() -> list[Any]:
            async with self.workers.contexts[0].database.reading() as connection:
                return list((await connection.execute(text(statement))).mappings())

        return self.workers.run(find())

    def difference(self) -> str:
        """What replay says, or an empty string."""
        try:
            self.workers.replay(_KEY)
        except Difference as found:
            return str(found)
        return ""


@pytest.fixture(scope="module")
def edited(new_database: NewDatabase) -> Iterator[Edited]:
    """Pruned, and changed by people since: its name, an arm's floor, the archive."""
    workers = Workers(new_database())
    write_varied(workers, _KEY)
    workers.submit(_KEY, LifecycleMove("conclude", "a"))
    database = workers.contexts[0].database
    [found] = workers.run(prunable(database, workers.now + 1, None))
    workers.run(prune(database, found, workers.now + 1, lambda _: None))
    workers.submit(_KEY, Patch({"name": "later"}))
    workers.submit(_KEY, ChangeArm("b", {"min_share": 0.2}), 1)
    workers.submit(_KEY, LifecycleMove("archive"))
    made = Edited(workers)
    assert made.difference() == ""
    yield made
    assert made.difference() == ""  # every edit was taken back
    workers.close()


# How a row of each table is named.
_NAMES = {"experiments": "id", "arms": "position", "findings": "kind", "events": "sequence"}
_PATCHED = """'{"before":{},"after":{"name":"x"}}'"""
_CELLS = [
    ("experiments", "name", "true", "'forged'", "experiment.name"),
    ("experiments", "confidence", "true", "0.5", "experiment.confidence"),
    ("experiments", "epoch", "true", "99", "epoch"),
    ("experiments", "as_of", "true", "as_of + 1", "as_of"),
    ("experiments", "pruned_at", "true", "pruned_at + 1", "pruned_at"),
    ("experiments", "status", "true", "'concluded'", "experiment.status"),
    ("arms", "name", "position = 1", "'forged'", "Arm 'b'"),
    ("arms", "value", "position = 3", "'7'", "Arm 'd'"),
    ("arms", "status", "position = 1", "'disabled'", "Arm 'b'"),
    ("arms", "pending", "position = 0", "pending + 1", "sums"),
    ("arms", "observations", "position = 0", "observations + 1", "sums"),
    ("arms", "reward_sum", "position = 3", "'17'", "sums"),
    ("arms", "matured_squares", "position = 3", "'17'", "sums"),
    ("arms", "expired", "position = 0", "expired + 1", "sums"),
    ("findings", "evidence", "kind = 'harmful'", "evidence + 1", "Finding harmful"),
    ("findings", "sequence", "kind = 'harmful'", "sequence - 1", "Finding harmful"),
    ("events", "at", "kind = 'pruned'", "1", "before the one before"),
    ("events", "details", "kind = 'pruned'", "'{}'", "cannot be repeated"),
    ("events", "details", "kind = 'patch'", _PATCHED, "(patch)"),
    ("events", "kind", "kind = 'arm_added'", "'void'", "a void cannot lead"),
    ("events", "kind", "kind = 'arm_changed'", "'nonsense'", "cannot be repeated"),
    ("events", "status_before", "kind = 'void'", "'voided'", "a void cannot lead"),
    ("events", "status_after", "kind = 'correction'", "'pending'", "a correction cannot lead"),
    ("events", "status_after", "kind = 'observation_edit'", "'voided'", "a correction cannot lead"),
]


@pytest.mark.parametrize("cell", _CELLS, ids=" ".join)
def test_an_edited_row_is_found_and_named(edited: Edited, cell: tuple[str, str, str, str, str]) -> None:
    """Settings, arms, sums, findings, and what is left of the history."""
    table, column, where, value, said = cell
    name = _NAMES[table]
    before = edited.read(f"SELECT {name} AS name, {column} AS value FROM {table} WHERE {where}")
    assert before
    edited.write(f"UPDATE {table} SET {column} = {value} WHERE {where}")
    try:
        found = edited.difference()
    finally:
        for row in before:
            edited.write(f"UPDATE {table} SET {column} = :value WHERE {name} = :name", **row)
    assert said in found, found


def test_an_event_may_be_missing_only_before_the_pruning(edited: Edited) -> None:
    """A correction from before it is not missed by its number; whatever comes after is."""
    columns = "experiment_id, sequence, kind, at, arm, details"
    for kind, said in (("expiry_run", ""), ("patch", "is missing"), ("arm_changed", "is missing")):
        row = edited.read(f"SELECT {columns} FROM events WHERE kind = '{kind}' ORDER BY sequence DESC LIMIT 1")[0]
        edited.write("DELETE FROM events WHERE sequence = :sequence", sequence=row["sequence"])
        try:
            found = edited.difference()
        finally:
            names = ", ".join(f":{name}" for name in columns.split(", "))
            edited.write(f"INSERT INTO events ({columns}) VALUES ({names})", **row)
        assert said in found
        assert bool(said) == bool(found)


def test_a_draw_that_is_still_there_is_a_difference(edited: Edited) -> None:
    """Pruned means that none is left."""
    columns = "experiment_id, number, sequence, positions, counts"
    edited.write(f"INSERT INTO batches ({columns}) SELECT id, 1, 2, '[0]', '[1]' FROM experiments")
    try:
        assert "although it was pruned" in edited.difference()
    finally:
        edited.write("DELETE FROM batches")


def test_who_only_says_that_it_was_pruned_is_found_out(new_database: NewDatabase) -> None:
    """The mark in the experiment's row alone does not spare the check: no event says so."""
    workers = Workers(new_database())
    write_varied(workers, _KEY)
    workers.submit(_KEY, LifecycleMove("conclude", "a"))
    made = Edited(workers)
    made.write("UPDATE experiments SET pruned_at = as_of")
    assert "pruned_at" in made.difference()
    workers.close()
