"""A file that somebody edited by hand, last line and all, is refused where it could break the service, and named by its line."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.application.copies.dump import dump
from service.application.copies.dump_file import DumpFile
from service.application.copies.load import LoadRequest, load
from service.command_line.experiment_commands import check_settings
from service.errors import InvalidValue
from service.storage import experiment_copies
from testing.databases import NewDatabase
from testing.dumps import edited
from testing.rows import Rows
from testing.varied_experiment import write_varied
from testing.workers import Workers

_BOMB = base64.b64encode(zlib.compress(bytes(80_000_000), 9)).decode()
_DEEP = "[" * 100_000 + "]" * 100_000


class Copied:
    """A file, and a database to load changed ones into."""

    def __init__(self, file: Path, workers: Workers) -> None:
        self.file, self.workers = file, workers

    def refusal(self, tmp_path: Path, change: Callable[[str, list[Any]], list[Any] | None]) -> str:
        """Why the changed file is not loaded, not even without the whole replay; nothing is left behind."""
        forged = edited(self.file, tmp_path / "forged.jsonl", change)
        return self.refusal_of(forged)

    def refusal_of(self, forged: Path) -> str:
        """The same for a file that is made already."""
        request = LoadRequest(check_settings, whole_replay=False)
        with pytest.raises(InvalidValue) as refused:
            self.workers.run(load(self.workers.contexts[0].database, DumpFile(forged), request))
        with Rows(self.workers.url) as rows:
            counts = rows.fingerprint()
        made_by_migrations = {"api_key_changes", "session_changes", "webhook_changes"}
        assert {name for name, count in counts.items() if count} == made_by_migrations
        return str(refused.value)


@pytest.fixture(scope="module")
def copied(sqlite_databases: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copied]:
    """An experiment with a bit of everything, as a file."""
    workers = Workers(sqlite_databases())
    write_varied(workers, "one")
    path = tmp_path_factory.mktemp("dump") / "one.jsonl"
    with path.open("wb") as opened:
        workers.run(dump(workers.contexts[0].database, "one", opened, lambda *_: None))
    workers.close()
    target = Workers(sqlite_databases())
    yield Copied(path, target)
    target.close()


def setting(table: str, column: str, value: object) -> Callable[[str, list[Any]], list[Any]]:
    """Set a column in the last row of its kind that has one."""
    place = experiment_copies.columns_of(table).index(column)

    def change(found: str, row: list[Any]) -> list[Any]:
        return [*row[:place], value, *row[place + 1 :]] if found == table else row

    return change


_CELLS: list[tuple[str, str, object]] = [
    *(
        ("experiments", column, "x")
        for column in ("sticky", "version", "confidence", "created_at", "uncounted", "tags", "policy")
    ),
    ("experiments", "key", "Not A Key"),
    ("experiments", "key", "1/loading"),
    ("experiments", "status", "deleted"),
    ("experiments", "status", "loading"),
    ("experiments", "status", "concluded"),
    ("experiments", "version", 0),
    ("experiments", "version", 2**63),
    ("experiments", "created_at", 2**62),
    ("experiments", "control", 99),
    ("experiments", "uncounted", "7,7"),
    ("experiments", "uncounted", ",".join(["0"] * 17)),
    ("experiments", "policy", '{"kind":"greedy","seed":1}'),
    ("experiments", "policy", '{"kind":"uniform","seed":"1"}'),
    ("experiments", "policy", '{"kind":"simple_tracking","seed":1,"sharpness":99.0}'),
    ("experiments", "policy", '{"kind":"uniform","seed":1,"surprise":1}'),
    ("experiments", "reward", '{"kind":"bounded","goal":"maximize","minimum":null,"maximum":null}'),
    ("experiments", "reward", '{"kind":"binary","goal":"maximize","minimum":null,"maximum":null}'),
    ("experiments", "expiry", '{"after_seconds":-5,"reward":null}'),
    ("experiments", "confidence", 1.5),
    ("experiments", "conclude_when", '{"separated":"yes","min_observations":1}'),
    ("experiments", "tags", '["Not A Tag"]'),
    ("experiments", "tags", _DEEP),
    ("experiments", "name", "x" * 256),
    ("experiments", "name", "a\x00b"),
    ("experiments", "draws", 1),
    ("experiments", "pruned_at", -1),
    ("arms", "position", 5),
    ("arms", "key", "a"),
    ("arms", "value", "{"),
    ("arms", "value", _DEEP),
    ("arms", "value", json.dumps("x" * 16_400)),
    ("arms", "min_share", 0.9),
    ("arms", "min_share", -0.1),
    ("arms", "status", "disabled"),
    ("arms", "reward_sum", "1.5"),
    ("arms", "reward_sum", "1/2^99999"),
    ("arms", "pending", -1),
    ("assignments", "arm", 4),
    ("assignments", "arm", None),
    ("assignments", "arm", "0"),
    ("assignments", "arm", True),
    ("assignments", "draw", 1),
    ("assignments", "sequence", 10**6),
    ("assignments", "token", -1),
    ("assignments", "unit", ""),
    ("assignments", "unit", "u" * 256),
    ("assignments", "unit", "a\x00b"),
    ("assignments", "status", "lost"),
    ("assignments", "reward", 1e101),
    ("assignments", "reward", "NaN"),
    ("assignments", "created_at", -1),
    ("assignments", "reason", "because"),
    ("events", "kind", "surprise"),
    ("events", "arm", 4),
    ("events", "draw", 10**6),
    ("events", "sequence", 7),
    ("events", "details", "[]"),
    ("events", "details", "{"),
    ("events", "reward_after", -1e101),
    ("batches", "positions", "[0,9]"),
    ("batches", "counts", "[1]"),
    ("batches", "counts", '["x"]'),
    ("batches", "number", 10**6),
    ("snapshots", "body", "!"),
    ("snapshots", "body", base64.b64encode(b"no zlib").decode()),
    ("snapshots", "body", base64.b64encode(zlib.compress(b"{}")).decode()),
    ("snapshots", "body", _BOMB),
    ("observations", "arm", 4),
    ("observations", "reward", None),
    ("observations", "id", ""),
    ("findings", "better", 4),
    ("findings", "kind", "nonsense"),
    ("replies", "body", _BOMB),
    ("replies", "body", base64.b64encode(b"note:draws 1 100000").decode()),
    ("replies", "body", base64.b64encode(b"note:draws x y").decode()),
    ("replies", "body", base64.b64encode(b'note:[9,1,"track",true]').decode()),
    ("replies", "status", 404),
]


@pytest.mark.parametrize(("table", "column", "value"), _CELLS, ids=lambda value: str(value)[:24])
def test_what_cannot_be_stored_is_refused_by_its_line(
    copied: Copied, tmp_path: Path, table: str, column: str, value: object
) -> None:
    """A type, a name, a position, a time, a number or a text that no service could have written."""
    said = copied.refusal(tmp_path, setting(table, column, value))
    assert said.startswith("Line ") or "arms" in said or "There are" in said, said


@pytest.mark.parametrize("table", ["experiments", "arms", "assignments", "events"])
def test_rows_that_are_missing_or_too_many_are_noticed(copied: Copied, tmp_path: Path, table: str) -> None:
    """The last one of a table is gone; all of them are; one is there twice; one has a column too many or too few."""

    def without(found: str, row: list[Any]) -> list[Any] | None:
        return None if found == table else row

    def longer(found: str, row: list[Any]) -> list[Any]:
        return [*row, 1] if found == table else row

    def shorter(found: str, row: list[Any]) -> list[Any]:
        return row[:-1] if found == table else row

    for change in (without, longer, shorter):
        assert copied.refusal(tmp_path, change)

    def doubled(lines: list[Any]) -> list[Any]:
        place = next(number for number, line in enumerate(lines) if isinstance(line, dict) and line.get("table") == table)
        return [*lines[: place + 2], lines[place + 1], *lines[place + 2 :]]

    def last_gone(lines: list[Any]) -> list[Any]:
        begun = [number for number, line in enumerate(lines) if isinstance(line, dict)]
        end = next((number for number in begun if number > begun[0] and _is_after(lines, number, table)), len(lines))
        return [*lines[: end - 1], *lines[end:]]

    for change_lines in (doubled, last_gone):
        assert copied.refusal_of(edited(copied.file, tmp_path / "forged.jsonl", lines=change_lines))


def _is_after(lines: list[Any], number: int, table: str) -> bool:
    """Does the table after this one begin in this line?"""
    earlier = [line["table"] for line in lines[1:number] if isinstance(line, dict)]
    return bool(earlier) and earlier[-1] == table


def test_tables_have_their_place_and_their_columns(copied: Copied, tmp_path: Path) -> None:
    """An unknown table, one that is missing, two that changed places, a column of another name: each is named."""

    def tables(lines: list[Any]) -> list[int]:
        return [number for number, line in enumerate(lines) if isinstance(line, dict) and "table" in line]

    def unknown(lines: list[Any]) -> list[Any]:
        return [*lines, {"table": "surprise", "columns": ["a"]}, [1]]

    def missing(lines: list[Any]) -> list[Any]:
        return lines[: tables(lines)[-1]]

    def renamed(lines: list[Any]) -> list[Any]:
        place = tables(lines)[1]
        return [*lines[:place], lines[place] | {"columns": ["x", *lines[place]["columns"][1:]]}, *lines[place + 1 :]]

    def swapped(lines: list[Any]) -> list[Any]:
        second, third, fourth = tables(lines)[1:4]
        return [*lines[:second], *lines[third:fourth], *lines[second:third], *lines[fourth:]]

    for change, said in ((unknown, "'surprise'"), (missing, "missing"), (renamed, "other columns"), (swapped, "not expected")):
        assert said in copied.refusal_of(edited(copied.file, tmp_path / "forged.jsonl", lines=change))


def test_a_file_of_another_schema_is_refused(copied: Copied, tmp_path: Path) -> None:
    """With both migrations, and what to do."""
    forged = edited(copied.file, tmp_path / "old.jsonl", lines=lambda found: [found[0] | {"migration": "0014"}, *found[1:]])
    said = copied.refusal_of(forged)
    assert "0014" in said
    assert "dump it again" in said


def test_a_file_that_nobody_touched_is_taken(copied: Copied, tmp_path: Path, sqlite_databases: NewDatabase) -> None:
    """Written anew by the very means that the other tests use: it is loaded, and replays."""
    target = Workers(sqlite_databases())
    same = edited(copied.file, tmp_path / "same.jsonl")
    target.run(load(target.contexts[0].database, DumpFile(same), LoadRequest(check_settings)))
    assert target.replay("one") > 100
    target.close()
