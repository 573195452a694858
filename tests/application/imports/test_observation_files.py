"""Files of past data as lines: the same from every format, and each mistake by the number of its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from service.application.commands.tell import ObservationItem, TellResult
from service.application.imports.file_columns import FileColumns
from service.application.imports.observation_files import opened_file
from service.application.imports.observation_lines import Line, named
from service.domain.file_formats import FileFormat
from service.engine.clock import microseconds_of
from service.errors import InvalidValue

_PAST = [("a", 1.0, "one", "2026-01-01T12:00:00Z"), ("b", 0.1, None, None), ("a", -2.5e-300, "=3", "2026-01-02")]
_LONG = "x" * 20_000


def _lines(path: Path, form: FileFormat = "csv", columns: FileColumns | None = None) -> list[Line]:
    with opened_file(path, form, columns or FileColumns()) as file:
        found = [line for batch in file.batches() for line in batch]
        assert file.position == file.length
        return found


def _written(folder: Path, content: str | bytes) -> Path:
    file = folder / "past"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def _details(lines: list[Line]) -> dict[int, str]:
    """What is wrong with which line."""
    return {line.number: line.item.detail or "" for line in lines if isinstance(line.item, TellResult)}


def _as_csv(folder: Path) -> tuple[Path, FileFormat]:
    rows = ["\ufeffarm,reward,id,time", "a,1,one,2026-01-01T12:00:00Z", "b,.1,,", "a,-2.5E-300,'=3,2026-01-02"]
    return _written(folder, "\r\n".join(rows)), "csv"


def _as_jsonl(folder: Path) -> tuple[Path, FileFormat]:
    rows = [dict(zip(("arm", "reward", "id", "time"), row, strict=True)) for row in _PAST]
    return _written(folder, "\n".join(map(json.dumps, rows))), "jsonl"


def _as_parquet(folder: Path) -> tuple[Path, FileFormat]:
    arms, rewards, ids, _ = zip(*_PAST, strict=True)
    times = [datetime(2026, 1, 1, 12, tzinfo=UTC), None, datetime(2026, 1, 2, tzinfo=UTC)]
    columns = {
        "arm": pa.array(arms).dictionary_encode(),
        "reward": pa.array(rewards),
        "id": pa.array(ids),
        "time": pa.array(times, pa.timestamp("ns", tz="UTC")),
    }
    parquet.write_table(pa.table(columns), folder / "past")
    return folder / "past", "parquet"


@pytest.mark.parametrize("write", [_as_csv, _as_jsonl, _as_parquet])
def test_every_format_holds_the_same_lines(write: Callable[[Path], tuple[Path, FileFormat]], tmp_path: Path) -> None:
    """Arm, reward to the last digit, id or none, time or none; texts that an export has defused are what they were."""
    lines = _lines(*write(tmp_path))
    items = [line.item for line in lines if isinstance(line.item, ObservationItem)]
    assert [(item.arm, item.reward, item.id) for item in items] == [row[:3] for row in _PAST]
    times = [None if row[3] is None else microseconds_of(datetime.fromisoformat(row[3])) for row in _PAST]
    assert [line.at for line in lines] == times


def test_csv_by_the_number_of_the_line(tmp_path: Path) -> None:
    """A field may hold line breaks, an empty line is none, and each mistake is told where it is."""
    rows = [
        "id,arm,reward,time",
        '"two\nlines",a,1,',
        "",
        "5,a,yes,",
        "6,a,1e101,",
        "7,a,nan,",
        "8,a,1_0,",
        "9,a,,",
        "10,a,1,yesterday",
        "11,a,1",
        f"{_LONG},a,1,",
        "13,,1,",
    ]
    lines = _lines(_written(tmp_path, "\n".join(rows)))
    assert [line.number for line in lines] == [2, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert isinstance(lines[0].item, ObservationItem)
    assert lines[0].item.id == "two\nlines"
    assert _details(lines) == {
        5: "/reward: Expected `float`, got `str`.",
        6: "/reward: Expected `float` <= 1e+100.",
        7: "/reward: Expected `float`, got `str`.",
        8: "/reward: Expected `float`, got `str`.",
        9: "/reward: Expected `float`, got `null`.",
        10: "/time: A time is written in ISO 8601, as 2026-01-01T12:00:00Z.",
        11: "The line has 3 fields, and there are 4 columns.",
        12: "/id: Expected `str` of length <= 255.",
    }


def test_json_by_the_number_of_the_line(tmp_path: Path) -> None:
    """Not JSON, no object, unknown and missing fields, other types, what no text may hold, and lines that are too long."""
    rows = [
        b'{"arm": "a", "reward": 1, "id": 7}',
        b"",
        b"[1]",
        b'{"arm": "a", "reward": 1',
        b'{"arm": "a"}',
        b'{"arm": "a", "reward": true}',
        b'{"arm": "a", "reward": "1"}',
        b'{"arm": "a", "reward": 1, "rewrad": 1}',
        b'{"arm": "a", "reward": 1, "id": "\\u0000"}',
        b'{"arm": "a", "reward": 1, "id": "\xff"}',
        b'{"arm": "a", "reward": 1, "id": ""}',
        b'{"arm": "' + _LONG.encode() + b'"}',
        b'{"arm": "a", "reward": 1e400}',
        b'{"arm": "a", "reward": 0}',
    ]
    lines = _lines(_written(tmp_path, b"\n".join(rows)), "jsonl")
    good = {line.number: line.item for line in lines if isinstance(line.item, ObservationItem)}
    assert {number: item.id for number, item in good.items()} == {1: "7", 14: None}
    assert list(_details(lines)) == [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert _details(lines)[12] == "The line is longer than 16 KiB."
    assert _details(lines)[8] == "There is no field 'rewrad'."


def test_text_that_is_not_utf8_is_refused_by_its_line(tmp_path: Path) -> None:
    """And the lines after it are read."""
    lines = _lines(_written(tmp_path, b"arm,reward,id\na,1,\xff\na,0,x\n"))
    assert list(_details(lines)) == [2]
    assert isinstance(lines[1].item, ObservationItem)


def test_other_names_of_columns(tmp_path: Path) -> None:
    """The file's own names are taken; what is none of the four is refused, or left out if so asked."""
    file = _written(tmp_path, "variant,country,converted\na,de,1\n")
    names = {"arm": "variant", "reward": "converted"}
    with pytest.raises(InvalidValue, match="'country'"):
        _lines(file, columns=FileColumns(names))
    (line,) = _lines(file, columns=FileColumns(names, others_ignored=True))
    assert isinstance(line.item, ObservationItem)
    assert (line.item.arm, line.item.reward) == ("a", 1.0)
    file = _written(tmp_path, '{"variant": "a", "country": "de", "converted": 1}\n')
    assert list(_details(_lines(file, "jsonl", FileColumns(names)))) == [1]
    assert _details(_lines(file, "jsonl", FileColumns(names, others_ignored=True))) == {}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no column 'arm'"),
        ("arm;reward\na;1\n", "no column 'arm'"),
        ("arm,reward,arm\n", "twice"),
        ('arm,reward\na,"1\n' + "x\n" * 100_000, "From line"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: str, said: str) -> None:
    """No header, another separator, a column twice, a quote without an end."""
    with pytest.raises(InvalidValue, match=said):
        _lines(_written(tmp_path, content))


def test_types_of_parquet(tmp_path: Path) -> None:
    """Whole numbers and decimals are rewards, whole numbers ids; truth values and texts are no rewards."""
    for rewards, good in (([1, 0], True), ([Decimal("0.5"), Decimal(1)], True), ([True, False], False), (["1", "0"], False)):
        parquet.write_table(pa.table({"arm": ["a", "b"], "reward": rewards, "id": [1, 2]}), tmp_path / "past")
        lines = _lines(tmp_path / "past", "parquet")
        assert [line.number for line in lines] == [1, 2]
        assert (_details(lines) == {}) is good
    with pytest.raises(InvalidValue, match="no Parquet file"):
        _lines(_written(tmp_path, "arm,reward\n"), "parquet")


def test_lines_without_an_id_get_one_of_the_source_and_their_number(tmp_path: Path) -> None:
    """Others keep theirs, and what is unreadable stays so."""
    lines = _lines(_written(tmp_path, "arm,reward,id\na,1,\na,x,\na,1,mine\n"))
    ids = [line.item.id if isinstance(line.item, ObservationItem) else None for line in named(lines, "file-1")]
    assert ids == ["file-1:2", None, "mine"]
