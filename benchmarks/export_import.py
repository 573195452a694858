"""Exports beside asks, and imports beside the batch route, with a million rows.

    python -m benchmarks.export_import [--rows N] [--lines N] [--seconds S] [--repetitions R] [--imports R]

One service on PostgreSQL, an experiment with a million assignments, most of them rewarded, and a hot one that is asked. Asks
alone and asks beside an export take turns, so that each pair is of one moment; memory is that of the service's whole tree of
processes. What a reader does with the file is no work of the service: curl takes it at a low priority. The files are read by
pandas, DuckDB and pyarrow, and what they find is held against the recommendation. Imports take turns with the batch route and
the stream, each into an experiment of its own; one import is killed in the middle and repeated.
Writes export_import.json among the results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pandas as pd
import pyarrow.csv
import pyarrow.json
from pyarrow import parquet

from benchmarks import subjects
from benchmarks.exports_beside_asks import ARMS, BATCH, BIG, E, beside_asks, fill, report_lines, whole_beside_asks
from benchmarks.hot_path import RESULTS, spread
from benchmarks.tree_memory import mib
from service.domain.file_formats import FILE_FORMATS
from testing.rows import Rows
from testing.server import Server


def _by_pandas(file: Path) -> pd.DataFrame:
    if file.suffix == ".jsonl":
        return pd.read_json(file, lines=True, engine="pyarrow")
    return pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)


def _by_duckdb(file: Path) -> pd.DataFrame:
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT arm, reward FROM '{file}'").df()


def _by_pyarrow(file: Path) -> pd.DataFrame:
    if file.suffix == ".jsonl":
        table = pyarrow.json.read_json(file)
    else:
        table = pyarrow.csv.read_csv(file) if file.suffix == ".csv" else parquet.read_table(file)
    frame: pd.DataFrame = table.select(["arm", "reward"]).to_pandas()
    return frame


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {"pandas": _by_pandas, "DuckDB": _by_duckdb, "pyarrow": _by_pyarrow}


def whole_files(client: httpx.Client, folder: Path) -> dict[str, Any]:
    """Every format once, quietly: how long it takes, how large it is, and what three readers find in it."""
    found: dict[str, Any] = {}
    recommended = {one["arm"]: one for one in client.get(f"{E}/{BIG}/recommendation").json()["arms"]}
    for form in FILE_FORMATS:
        file, began = folder / f"big.{form}", time.perf_counter()
        with file.open("wb") as stream, client.stream("GET", f"{E}/{BIG}/export", params={"format": form}) as answer:
            for piece in answer.iter_raw():
                stream.write(piece)
        found[form] = {"seconds": time.perf_counter() - began, "bytes": file.stat().st_size, "read_seconds": {}}
        for name, read in _READERS.items():
            began = time.perf_counter()
            frame = read(file)
            found[form]["read_seconds"][name] = time.perf_counter() - began
            found[form]["rows"] = len(frame)
            by_arm = frame.groupby("arm")["reward"].agg(["count", "sum", "mean"])
            for arm, one in recommended.items():
                numbers = (int(by_arm["count"][arm]), float(by_arm["mean"][arm]))
                if numbers != (one["observations"], one["mean"]):
                    raise RuntimeError(f"{name} finds {numbers} of {arm} in {form}, the service says {one}.")
        print(f"{form:8s} {found[form]['rows']:,} rows in {found[form]['seconds']:.1f} s, {mib(found[form]['bytes'])}; "
              f"{', '.join(_READERS)} find the service's counts and means", flush=True)  # fmt: skip
    return found


def cut_and_resumed(client: httpx.Client, rows: int) -> dict[str, int]:
    """Cut in the middle of a line, twice, and gone on with: every draw once."""
    draws: list[int] = []
    after, cuts = 0, 0
    while True:
        held, most = b"", (rows // 3) * 300 if cuts < 2 else None  # noqa: PLR2004 - two cuts
        with client.stream("GET", f"{E}/{BIG}/export", params={"format": "jsonl", "after": after}) as answer:
            for piece in answer.iter_raw():
                held += piece
                if most is not None and len(held) > most:
                    break
        lines = held[: held.rfind(b"\n") + 1].splitlines()
        draws += [json.loads(line)["draw"] for line in lines]
        if most is None:
            break
        after, cuts = json.loads(lines[-1])["sequence"], cuts + 1
    if draws != list(range(1, rows + 1)):
        raise RuntimeError("The parts are not the whole.")
    print(f"cut {cuts} times and gone on with: {len(draws):,} draws, each once", flush=True)
    return {"cuts": cuts, "draws": len(draws)}


def past_data(folder: Path, lines: int) -> tuple[Path, Path]:
    """The same lines as CSV without ids, and as JSON lines with some."""
    table, objects = folder / "past.csv", folder / "past.jsonl"
    with table.open("w") as csv, objects.open("w") as jsonl:
        csv.write("arm,reward\n")
        for number in range(lines):
            arm, reward = f"a{number * 7 % ARMS}", int(number % 10 < 3)  # noqa: PLR2004 - three of ten
            csv.write(f"{arm},{reward}\n")
            jsonl.write(f'{{"arm":"{arm}","reward":{reward},"id":"{number}"}}\n')
    return table, objects


def imports(server: Server, client: httpx.Client, files: tuple[Path, Path], lines: int, repetitions: int) -> dict[str, Any]:
    """Lines a second: the batch route, the command, and the stream; each into an experiment of its own."""
    found: dict[str, list[float]] = {"batch route": [], "bestarm import": [], "stream": []}
    command = [sys.executable, "-m", "service", "import"]
    environment = os.environ | {"BESTARM_DATABASE_URL": server.database_url}
    for repetition in range(repetitions):
        for way, rates in found.items():
            key = f"past-{way.replace(' ', '-')}-{repetition}"
            subjects.create(client, key, ARMS)
            began = time.perf_counter()
            if way == "batch route":
                _batches(client, key, files[1])
            elif way == "stream":
                _stream(client, key, files[1])
            else:
                subprocess.run([*command, key, files[0]], env=environment, check=True, stdout=subprocess.DEVNULL)
            rates.append(lines / (time.perf_counter() - began))
            imported = client.get(f"{E}/{key}/recommendation").json()["imported"]
            if imported != lines + 5 * ARMS:
                raise RuntimeError(f"{imported} are imported.")
            print(f"{repetition + 1}/{repetitions} {way:15s} {rates[-1]:10,.0f} lines/s", flush=True)
    return found


def _batches(client: httpx.Client, key: str, file: Path) -> None:
    items = []
    with file.open() as lines:
        for line in lines:
            items.append(json.loads(line))
            if len(items) == BATCH:
                client.post(f"{E}/{key}/observations", json={"observations": items}).raise_for_status()
                items = []


def _stream(client: httpx.Client, key: str, file: Path) -> None:
    with file.open("rb") as lines:
        headers = {"content-type": "application/x-ndjson"}
        client.post(f"{E}/{key}/observations", content=lines, headers=headers, timeout=None).raise_for_status()


def killed_import(server: Server, client: httpx.Client, table: Path, lines: int) -> dict[str, int]:
    """Killed when a third is imported, and repeated: each line once."""
    key = "past-killed"
    client.post(E, json={"key": key, "arms": [{"key": f"a{arm}"} for arm in range(ARMS)]}).raise_for_status()
    command = [sys.executable, "-m", "service", "import", key, str(table)]
    environment = os.environ | {"BESTARM_DATABASE_URL": server.database_url}
    with Rows(server.database_url) as rows:
        running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while rows.query("SELECT imported FROM experiments WHERE key = :key", key=key)[0][0] < lines / 3:
            time.sleep(0.05)
        running.kill()
        running.wait()
        before = int(rows.query("SELECT imported FROM experiments WHERE key = :key", key=key)[0][0])
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    frame = pd.read_csv(table).groupby("arm")["reward"].agg(["count", "sum", "mean"])
    for one in client.get(f"{E}/{key}/recommendation").json()["arms"]:
        row = frame.loc[one["arm"]]
        if (one["observations"], one["mean"]) != (int(row["count"]), float(row["mean"])):
            raise RuntimeError(f"{one} is not {row}.")
    print(f"killed at {before:,} lines; repeated: {done.stdout.strip()} Each arm has the file's count and mean.", flush=True)
    return {"imported_when_killed": before, "lines": lines}


class Kept:
    """What has been measured so far, kept part by part: a part that fails loses none before it."""

    def __init__(self, chosen: dict[str, Any]) -> None:
        self._chosen, self._load_before = chosen, os.getloadavg()[0]
        self.measured: dict[str, Any] = {}

    def add(self, name: str, part: Any) -> None:  # noqa: ANN401 - what each part measures
        """Keep this part beside those before it."""
        self.measured[name] = part
        load = {"load_before": self._load_before, "load_after": os.getloadavg()[0]}
        machine = {"python": platform.python_version(), "cores": os.cpu_count(), **load}
        kept = {**self._chosen, "machine": machine, "measured": self.measured}
        (RESULTS / "export_import.json").write_text(json.dumps(kept, indent=1) + "\n")


def report(measured: dict[str, Any]) -> str:
    """What was wanted, and what was found."""
    lines = ["| what | median [range] | wanted |", "|---|---|---|"]
    lines += report_lines(measured["beside_asks"])
    batch = measured["imports"]["batch route"]
    for way in ("bestarm import", "stream"):
        ratios = [one / other for one, other in zip(measured["imports"][way], batch, strict=True)]
        lines.append(f"| lines a second of {way}, of the batch route's | {spread(ratios)} | reported |")
    lines.append(f"| lines a second of the batch route | {spread(batch)} | reported |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--imports", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        postgres = stack.enter_context(subjects.cluster())
        server = stack.enter_context(subjects.service(postgres))
        client = stack.enter_context(httpx.Client(base_url=server.url, timeout=600))
        kept = Kept(vars(chosen))
        fill(client, chosen.rows)
        kept.add("whole_files", whole_files(client, folder))
        kept.add("cut_and_resumed", cut_and_resumed(client, chosen.rows))
        kept.add("beside_asks", beside_asks(server, chosen.seconds, chosen.repetitions))
        kept.add("whole_beside_asks", whole_beside_asks(server))
        files = past_data(folder, chosen.lines)
        kept.add("imports", imports(server, client, files, chosen.lines, chosen.imports))
        kept.add("killed_import", killed_import(server, client, files[0], chosen.lines))
    print(report(kept.measured))


if __name__ == "__main__":
    main()
