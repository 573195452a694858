"""What is in the files: every row of one snapshot, the same in three formats, exact to the last digit."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import duckdb
import httpx
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pytest
from pyarrow import parquet

from service.application.reads.export import EXPORTED, Exported, ExportOrder
from service.domain.file_formats import FILE_FORMATS, FileFormat
from service.domain.spreadsheet_text import undefused
from service.engine.clock import microseconds_of, text_of_time
from service.exact import NO_REWARDS, Moments
from service.storage.database import Database
from service.storage.row_streams.row_source import RowSource
from service.web.exports.export_file import FileOrder, file_pieces
from service.web.exports.export_schema import COLUMNS
from testing.json_client import JsonClient, arms
from testing.server import Server

Pairs = list[tuple[str, float]]
"""The arm and the reward of each row that has one."""

_FORMULAS = ["=1+1", "+49 30", "-x", "@you", "\tx", "\rx", "'quoted"]
_UNITS = [*_FORMULAS, "a,b", 'say "hi"', "two\nlines", "two\r\nlines", "a\u2028b", "a\x85b", "a\x0cb", "né", "😀", "plain"]
_REAL = [0.1, 1 / 3, -2.5e-300, 1e100, 7.0, 0.0, 123456789.123456789, -0.7]
_E = "/v1/experiments"
_BINARY_KEY, _REAL_KEY = "export-binary", "export-real"


@pytest.fixture(scope="module")
def told(server: Server) -> tuple[str, str]:
    """Two experiments to which everything has happened, with binary rewards and with real ones: their keys."""
    with JsonClient(server.url) as wire:
        wire.create(_BINARY_KEY, arms=arms(3), expiry={"after_seconds": 3600, "reward": 0})
        wire.create(_REAL_KEY, arms=arms(3), reward={"kind": "real"})
        _let_everything_happen(wire, _BINARY_KEY, [0.0, 1.0])
        _let_everything_happen(wire, _REAL_KEY, _REAL)
    return _BINARY_KEY, _REAL_KEY


def _let_everything_happen(wire: JsonClient, key: str, rewards: list[float]) -> None:
    units = [*_UNITS, *(f"user-{number}" for number in range(60))]
    drawn = wire.send("POST", f"{_E}/{key}/assignments/batch", {"units": units}).body["assignments"]
    told = [{"assignment": one["id"], "reward": rewards[place % len(rewards)]} for place, one in enumerate(drawn[:-9])]
    assert wire.send("POST", f"{_E}/{key}/rewards", {"rewards": told}).status == 200
    path = f"{_E}/{key}/assignments"
    assert wire.send("PUT", f"{path}/{drawn[0]['id']}/reward", {"reward": rewards[1]}).status == 200
    assert wire.send("DELETE", f"{path}/{drawn[1]['id']}/reward").status == 200
    assert wire.send("DELETE", f"{path}/{drawn[-1]['id']}/reward").status == 200
    observed: list[dict[str, Any]] = [
        {"arm": f"arm-{place % 3}", "reward": rewards[place % len(rewards)], "id": f"={place}"} for place in range(20)
    ]
    observed += [{"arm": "arm-1", "reward": rewards[-1]}]
    assert wire.send("POST", f"{_E}/{key}/observations", {"observations": observed}).status == 200
    assert wire.send("PUT", f"{_E}/{key}/observations/=3", {"reward": rewards[0]}).status == 200
    assert wire.send("DELETE", f"{_E}/{key}/observations/=4").status == 200
    assert wire.send("PATCH", f"{_E}/{key}/arms/arm-2", {"status": "disabled", "value": {"big": 2**80}}).status == 200
    wire.ask(key)


class Files:
    """Exports of the experiments of a service, made as its processes and the command line make them."""

    def __init__(self, database_url: str) -> None:
        self._source = asyncio.run(_source_of(database_url))

    def file(self, key: str, of: str = "assignments", form: str = "csv", **asked: Any) -> bytes:  # noqa: ANN401 - of the order
        """The bytes of a file."""

        async def whole() -> bytes:
            order = FileOrder(ExportOrder(key, cast("Exported", of), **asked), cast("FileFormat", form))
            return b"".join([piece.content async for piece in file_pieces(self._source, order)])

        return asyncio.run(whole())

    def rows(self, key: str, of: str = "assignments", **asked: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as above
        """The rows as JSON lines give them, whatever a reader takes for the end of a line."""
        return [json.loads(line) for line in self.file(key, of, "jsonl", **asked).decode().splitlines()]


async def _source_of(database_url: str) -> RowSource:
    database = Database(database_url)
    await database.close()
    return database.row_source


@pytest.fixture(scope="module")
def files(server: Server) -> Files:
    """Of the shared service."""
    return Files(server.database_url)


def _typed(column_type: str, text: str) -> object:
    """A field of CSV as the value that it stands for."""
    if not text:
        return None
    read: dict[str, Callable[[str], object]] = {
        "integer": int,
        "number": float,
        "boolean": {"true": True, "false": False}.__getitem__,
        "json": json.loads,
        "text": undefused,
        "time": str,
    }
    return read[column_type](text)


@pytest.mark.parametrize("of", EXPORTED)
def test_every_format_says_the_same(files: Files, told: tuple[str, str], of: Exported) -> None:
    """CSV, JSON lines and Parquet hold the same rows, column by column and to the last digit."""
    columns = COLUMNS[of]
    for key in told:
        rows = files.rows(key, of)
        assert rows
        assert [list(row) for row in rows] == [[column.name for column in columns]] * len(rows)
        text = files.file(key, of, "csv").decode()
        read = list(csv.reader(io.StringIO(text, newline="")))
        assert read[0] == list(rows[0])
        assert text.endswith("\r\n")
        types = [column.type for column in columns]
        assert [list(map(_typed, types, line)) for line in read[1:]] == [list(row.values()) for row in rows]
        table = parquet.read_table(io.BytesIO(files.file(key, of, "parquet")))
        assert [field.nullable for field in table.schema] == [column.nullable for column in columns]
        for column in columns:
            stored = table.column(column.name)
            if column.type == "time":
                found: list[object] = [None if at is None else text_of_time(at) for at in stored.cast(pa.int64()).to_pylist()]
            else:
                found = [json.loads(one) if one and column.type == "json" else one for one in stored.to_pylist()]
            assert found == [row[column.name] for row in rows], column.name


def test_assignments_are_those_of_the_list(files: Files, api: httpx.Client, told: tuple[str, str]) -> None:
    """Whatever the list of assignments shows is in the export, in the other order."""
    shown = ("id", "arm", "unit", "draw", "reason", "status", "reward", "created_at", "rewarded_at", "expires_at")
    for key in told:
        listed = api.get(f"{_E}/{key}/assignments", params={"page_size": 1000}).json()["assignments"]
        rows = files.rows(key)
        assert [[row[name] for name in shown] for row in rows[::-1]] == [[one[name] for name in shown] for one in listed]
        assert [row["sequence"] for row in rows] == sorted({row["sequence"] for row in rows})


def test_observations_are_those_of_the_list(files: Files, api: httpx.Client, told: tuple[str, str]) -> None:
    """With an id or without, corrected and voided as they are now."""
    shown = ("id", "arm", "status", "reward", "observed_at", "sequence")
    for key in told:
        listed = api.get(f"{_E}/{key}/observations", params={"page_size": 1000}).json()["observations"]
        rows = files.rows(key, "observations")
        assert len(rows) == 21
        assert [[row[name] for name in shown] for row in rows[::-1]] == [[one[name] for name in shown] for one in listed]


def test_events_hold_the_audit_log_and_everything_else(files: Files, api: httpx.Client, told: tuple[str, str]) -> None:
    """Every number of the sequence once; what is audited, in the words of the audit log."""
    rows = files.rows(told[0], "events")
    assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1))
    audited = {row["sequence"]: row for row in rows if row["audited"]}
    for entry in api.get(f"{_E}/{told[0]}/events", params={"page_size": 1000}).json()["events"]:
        row = audited.pop(entry["sequence"])
        assert [row[name] for name in ("kind", "at", "arm", "draw")] == [entry[name] for name in ("kind", "at", "arm", "draw")]
        if entry["kind"] in ("created", "arm_changed"):
            assert row["details"] == entry["details"]
    assert audited == {}


def test_the_history_is_the_course(files: Files, api: httpx.Client, told: tuple[str, str]) -> None:
    """One row for each point and arm, with the numbers of `GET …/history`."""
    points = api.get(f"{_E}/{told[0]}/history", params={"points": 1000}).json()["points"]
    expected = [
        {"sequence": point["version"], "at": point["at"], "leads": one["arm"] == point["arm"]}
        | {name: one[name] for name in ("arm", "draws", "observations", "mean", "share", "target_share")}
        | dict(zip(("interval_low", "interval_high"), one["interval"] or (None, None), strict=True))
        for point in points
        for one in point["arms"]
    ]
    rows = files.rows(told[0], "history")
    assert [{name: row[name] for name in expected[0]} for row in rows] == expected
    assert [row["active"] for row in rows if row["arm"] == "arm-2"][-1] is False


def _by_arm(pairs: Pairs) -> dict[str, Moments]:
    """The rewards of each arm, added up exactly as the service does it."""
    moments: defaultdict[str, Moments] = defaultdict(lambda: NO_REWARDS)
    for arm, reward in pairs:
        moments[arm] = moments[arm].with_reward(reward)
    return moments


def _read_by_pandas(file: Path) -> Pairs:
    if file.suffix == ".jsonl":
        frame = pd.read_json(file, lines=True, engine="pyarrow")
    else:
        frame = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    there = frame[frame["reward"].notna()]
    return list(zip(there["arm"].tolist(), there["reward"].tolist(), strict=True))


def _read_by_pyarrow(file: Path) -> Pairs:
    if file.suffix == ".csv":
        table = pyarrow.csv.read_csv(file, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    else:
        table = pyarrow.json.read_json(file) if file.suffix == ".jsonl" else parquet.read_table(file)
    pairs = zip(table.column("arm").to_pylist(), table.column("reward").to_pylist(), strict=True)
    return [(arm, reward) for arm, reward in pairs if reward is not None]


def _read_by_duckdb(file: Path) -> Pairs:
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT arm, reward FROM '{file}' WHERE reward IS NOT NULL").fetchall()


@pytest.mark.parametrize("read", [_read_by_pandas, _read_by_pyarrow, _read_by_duckdb])
@pytest.mark.parametrize("form", FILE_FORMATS)
@pytest.mark.usefixtures("told")
def test_pandas_duckdb_and_pyarrow_find_the_service_s_own_numbers(
    files: Files, api: httpx.Client, form: str, read: Callable[[Path], Pairs], tmp_path: Path
) -> None:
    """Counts, means and variances of the rewards that they read are the recommendation's, to the last digit."""
    for key in (_BINARY_KEY, _REAL_KEY):
        recommended = api.get(f"{_E}/{key}/recommendation").json()["arms"]
        pairs: Pairs = []
        for of in ("assignments", "observations"):
            file = tmp_path / f"{key}-{of}.{form}"
            file.write_bytes(files.file(key, of, form))
            pairs += read(file)
        found = _by_arm(pairs)
        assert {one["arm"]: one["observations"] for one in recommended} == {arm: one.count for arm, one in found.items()}
        if key == _REAL_KEY:  # without a numeric expiry, whose pending draws count in the means
            assert {one["arm"]: (one["mean"], one["variance"]) for one in recommended} == {
                arm: (one.mean(), one.variance()) for arm, one in found.items()
            }


def test_means_with_silence_follow_from_the_file(files: Files, api: httpx.Client, told: tuple[str, str]) -> None:
    """Under a numeric expiry a pending draw counts as `expiry_reward`: with it the means are the recommendation's."""
    rows = files.rows(_BINARY_KEY)
    pairs = [(row["arm"], row["expiry_reward"] if row["status"] == "pending" else row["reward"]) for row in rows]
    observed = [(row["arm"], row["reward"]) for row in files.rows(_BINARY_KEY, "observations")]
    found = _by_arm([pair for pair in pairs + observed if pair[1] is not None])
    recommended = api.get(f"{_E}/{told[0]}/recommendation").json()
    assert {one["arm"]: one["mean"] for one in recommended["arms"]} == {arm: one.mean() for arm, one in found.items()}
    counted = [row for row in rows if row["status"] == "pending" or row["reward"] is not None]
    assert recommended["draws"] == len(counted) + sum(reward is not None for _, reward in observed)


def test_formulas_are_defused_and_brought_back(files: Files, told: tuple[str, str]) -> None:
    """No unit begins as a formula does; one leading apostrophe taken away, every unit is what it was."""
    text = files.file(told[0]).decode()
    units = [line["unit"] for line in csv.DictReader(io.StringIO(text, newline=""))][: len(_UNITS)]
    assert not [unit for unit in units if unit.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    assert [undefused(unit) for unit in units] == _UNITS
    assert {"'=1+1", "''quoted", "plain"} <= set(units)


@pytest.mark.parametrize(
    ("of", "time"), [("assignments", "created_at"), ("observations", "observed_at"), ("events", "at"), ("history", "at")]
)
def test_filters_leave_out_what_they_say(files: Files, told: tuple[str, str], of: str, time: str) -> None:
    """By arm, by time and by sequence, alone and together, the rows are those of the whole file that fit."""
    rows = files.rows(told[0], of)
    after, since, until = rows[len(rows) // 2]["sequence"], rows[len(rows) // 4][time], rows[-2][time]

    def found(**asked: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of the order
        times = {name: microseconds_of(datetime.fromisoformat(asked[name])) for name in ("since", "until") if name in asked}
        return files.rows(told[0], of, **(asked | times))

    assert found(arm="arm-1") == [row for row in rows if row["arm"] == "arm-1"]
    assert found(after=after) == [row for row in rows if row["sequence"] > after]
    assert found(since=since, until=until) == [row for row in rows if since <= row[time] < until]
    assert found(after=after, until=until, arm="arm-1") == [
        row for row in rows if row["sequence"] > after and row[time] < until and row["arm"] == "arm-1"
    ]
    assert found(after=10**12) == found(since="2999-01-01") == found(until="1999-01-01") == []
    assert found(after=rows[-1]["sequence"] - 1)[-1] == rows[-1]


@pytest.mark.parametrize("form", FILE_FORMATS)
def test_an_empty_export_is_a_whole_file(files: Files, experiment: str, form: str) -> None:
    """Of an experiment without a draw: the names of the columns, or nothing, or a table without rows."""
    content = files.file(experiment, "assignments", form)
    if form == "parquet":
        assert parquet.read_table(io.BytesIO(content)).num_rows == 0
    else:
        names = ",".join(column.name for column in COLUMNS["assignments"])
        assert content.decode() == (f"{names}\r\n" if form == "csv" else "")
