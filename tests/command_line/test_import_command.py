"""`bestarm import`: past data, each line once, whatever happens in between; and experiments that begin with it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from service.application.commands.ask import Ask
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.tell import ObservationItem, Observe
from service.cli import app
from testing.rows import Rows
from testing.workers import Workers

Run = Callable[..., Result]


@pytest.fixture
def run(database_url: str) -> Run:
    """The command in this process, on a database of its own."""

    def done(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, ["import", *map(str, arguments)], env={"BESTARM_DATABASE_URL": database_url})

    return done


@pytest.fixture
def experiment(database_url: str) -> str:
    """An experiment `e` with arms a, b and c in that database."""
    workers = Workers(database_url, 1)
    workers.create("e", [("a", 0.0), ("b", 0.0), ("c", 0.0)])
    workers.close()
    return "e"


def _csv(folder: Path, *rows: str, header: str = "arm,reward", name: str = "past.csv") -> Path:
    file = folder / name
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def _past(folder: Path, lines: int) -> Path:
    """Lines without an id, of three arms."""
    return _csv(folder, *(f"{'abc'[number * number % 7 % 3]},{int(number % 10 < 3)}" for number in range(lines)))


def _counted(database_url: str, key: str = "e") -> list[tuple[int, str]]:
    """(observations, sum) of every arm."""
    with Rows(database_url) as rows:
        return [(observations, total) for _, _, observations, total in rows.arms_of(key)]


def _expected(file: Path) -> list[tuple[int, str]]:
    rows = [line.split(",") for line in file.read_text().splitlines()[1:]]
    arms = sorted({row[0] for row in rows})
    return [(sum(row[0] == arm for row in rows), str(sum(int(row[1]) for row in rows if row[0] == arm))) for arm in arms]


def _replayed(database_url: str, key: str = "e") -> int:
    workers = Workers(database_url, 1)
    try:
        return workers.replay(key)
    finally:
        workers.close()


def test_a_file_is_imported_once(run: Run, database_url: str, experiment: str, tmp_path: Path) -> None:
    """Lines without an id count once however often the same file comes; changed, it is another file."""
    file = _past(tmp_path, 2_500)
    first, again = run(experiment, file), run(experiment, file)
    assert (first.exit_code, first.stdout) == (0, "e: 2,500 lines: 2,500 recorded.\n")
    assert (again.exit_code, again.stdout) == (0, "e: 2,500 lines: 2,500 recorded before.\n")
    assert _counted(database_url) == _expected(file)
    assert _replayed(database_url) == 2_501
    file.write_text(file.read_text() + "a,1\n")
    assert run(experiment, file).stdout == "e: 2,501 lines: 2,501 recorded.\n"


def test_a_file_that_grows_is_named_by_its_source(run: Run, experiment: str, tmp_path: Path) -> None:
    """With --source a line is the same one again if it stands where it stood; one that has changed is in conflict."""
    file = _csv(tmp_path, "a,1", "b,0")
    assert run(experiment, file, "--source", "shop").stdout == "e: 2 lines: 2 recorded.\n"
    file = _csv(tmp_path, "a,1", "b,0", "c,1")
    assert run(experiment, file, "--source", "shop").stdout == "e: 3 lines: 1 recorded, 2 recorded before.\n"
    changed = run(experiment, _csv(tmp_path, "a,0", "b,0"), "--source", "shop")
    assert (changed.exit_code, changed.stdout) == (1, "e: 2 lines: 1 recorded before, 1 in conflict.\n")
    assert changed.stderr == "line 2: conflict: Observation 'shop:2' was told before with another arm or reward.\n"


def test_bad_lines_are_named_and_nothing_is_imported(run: Run, database_url: str, experiment: str, tmp_path: Path) -> None:
    """Unless the others are asked for: a file that is mended is another file."""
    file = _csv(tmp_path, "a,1", "nope,1", "b,2", "b", "c,0")
    refused = run(experiment, file)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.splitlines()[:3] == [
        "line 3: not_found: Experiment 'e' has no arm 'nope'.",
        "line 4: invalid: A binary reward is 0 or 1.",
        "line 5: invalid: The line has 1 fields, and there are 2 columns.",
    ]
    assert "3 of 5 lines are bad, so nothing of past.csv was." in refused.stderr
    assert _counted(database_url) == [(0, "0")] * 3
    others = run(experiment, file, "--skip-bad-lines")
    assert (others.exit_code, others.stdout) == (1, "e: 5 lines: 2 recorded, 1 of no arm, 2 invalid.\n")
    assert _counted(database_url) == [(1, "1"), (0, "0"), (1, "0")]


def test_the_list_of_bad_lines_is_bounded(run: Run, experiment: str, tmp_path: Path) -> None:
    """A hundred by name, the rest by number."""
    refused = run(experiment, _csv(tmp_path, *["nope,1"] * 250))
    assert refused.stderr.count("not_found") == 100
    assert "… and 150 more." in refused.stderr


def test_a_dry_run_says_what_would_happen(run: Run, database_url: str, experiment: str, tmp_path: Path) -> None:
    """To every line, what was told before and what the file repeats included; and nothing happens."""
    told = ["a,1,one", "b,0,two"]
    assert run(experiment, _csv(tmp_path, *told, header="arm,reward,id")).exit_code == 0
    more = _csv(
        tmp_path, *told, "c,1,three", "c,1,three", "c,0,three", "a,1,", "nope,1,", "b,1,two", "b,2,", header="arm,reward,id"
    )
    before = _counted(database_url)
    rehearsed = run(experiment, more, "--dry-run")
    words = "9 lines: 2 recorded, 3 recorded before, 2 in conflict, 1 of no arm, 1 invalid.\n"
    assert (rehearsed.exit_code, rehearsed.stdout) == (1, f"e: a dry run: {words}")
    assert _counted(database_url) == before
    done = run(experiment, more, "--skip-bad-lines")
    assert (done.stdout, done.stderr) == (f"e: {words}", rehearsed.stderr)


def test_every_format(run: Run, database_url: str, experiment: str, tmp_path: Path) -> None:
    """By the ending of its name, or as it is called."""
    (tmp_path / "past.jsonl").write_text('{"arm": "a", "reward": 1, "id": "json"}\n')
    parquet.write_table(pa.table({"variant": ["b", "c"], "reward": [1, 1], "more": [0, 0]}), tmp_path / "past.parquet")
    (tmp_path / "past.txt").write_text("arm,reward\nc,0\n")
    assert run(experiment, tmp_path / "past.jsonl").exit_code == 0
    table = run(experiment, tmp_path / "past.parquet", "--column", "arm=variant", "--ignore-other-columns")
    assert (table.exit_code, table.stdout) == (0, "e: 2 lines: 2 recorded.\n")
    assert run(experiment, tmp_path / "past.txt").exit_code == 2
    assert run(experiment, tmp_path / "past.txt", "--format", "csv").exit_code == 0
    assert _counted(database_url) == [(1, "1"), (1, "1"), (2, "1")]


def test_times_are_checked_and_their_order_is_told(run: Run, experiment: str, tmp_path: Path) -> None:
    """They are kept nowhere: an observation has the time at which it was told."""
    file = _csv(tmp_path, "a,1,2026-01-02", "a,1,2026-01-01", "a,1,2026-01-03", "a,1,", header="arm,reward,time")
    done = run(experiment, file)
    assert done.exit_code == 0
    assert done.stderr.startswith("Lines that are earlier than one above them: 1.")
    assert run(experiment, _csv(tmp_path, "a,1,soon", header="arm,reward,time")).exit_code == 1


@pytest.mark.process
def test_killed_in_the_middle_and_repeated_each_line_counts_once(database_url: str, experiment: str, tmp_path: Path) -> None:
    """By SIGKILL, twice, and once to the end."""
    file, command = _past(tmp_path, 30_000), [sys.executable, "-m", "service", "import", experiment, str(tmp_path / "past.csv")]
    environment = os.environ | {"BESTARM_DATABASE_URL": database_url}
    with Rows(database_url) as rows:

        def imported() -> int:
            return int(rows.query("SELECT imported FROM experiments")[0][0])

        for least in (1, 5_000):
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 120
            while imported() < least and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait(60)
            assert least <= imported() < 30_000
        before = imported()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    counted = re.fullmatch(r"e: 30,000 lines: ([\d,]+) recorded, ([\d,]+) recorded before\.\n", done.stdout)
    assert counted is not None, done.stdout
    assert int(counted[2].replace(",", "")) == before
    assert _counted(database_url) == _expected(file)
    assert _replayed(database_url) == 30_001


def test_beside_live_traffic(run: Run, database_url: str, experiment: str, tmp_path: Path) -> None:
    """Another worker draws and observes in the same experiment all the while: everything counts once, and replay agrees."""
    workers, file = Workers(database_url, 1), _past(tmp_path, 3_000)
    told = 0

    def live() -> None:
        nonlocal told
        told += 1
        workers.submit(experiment, Ask(f"unit-{told}"))
        workers.submit(experiment, Observe([ObservationItem("a", 1.0, f"live-{told}")]))

    with ThreadPoolExecutor(1) as thread:
        live()
        importing = thread.submit(run, experiment, file)
        while not importing.done():
            live()
        live()
    assert importing.result().exit_code == 0
    progress = workers.look(experiment).progress
    assert (progress.imported, progress.draws) == (3_000 + told, told)
    assert workers.replay(experiment) == 3_001 + 2 * told
    workers.close()
    with Rows(database_url) as rows:
        kinds = [kind for (kind,) in rows.query("SELECT kind FROM events ORDER BY sequence")]
    drawn = [place for place, kind in enumerate(kinds) if kind == "draw"]
    assert [one for one, other in pairwise(drawn) if other > one + 2], "no line of the file came between two asks"


def test_a_warm_start_is_one_command(run: Run, database_url: str, tmp_path: Path) -> None:
    """The arms are those of the file, in their order; the recommendation says how much was imported; again, it goes on."""
    file = _csv(tmp_path, *["green,1", "grey,0", "green,1", "blue,0"] * 10)
    first = run("warm", file, "--create")
    assert (first.exit_code, first.stdout) == (0, "warm: 40 lines: 40 recorded.\n")
    assert run("warm", file, "--create").stdout == "warm: 40 lines: 40 recorded before.\n"
    workers = Workers(database_url, 1)
    look = workers.look("warm")
    assert [standing.arm.key for standing in look.standings] == ["green", "grey", "blue"]
    assert look.best is not None
    assert (look.best.key, look.progress.imported, look.progress.experiment.status) == ("green", 40, "running")
    assert "40 of the 40 rewards were imported (told without an ask)." in look.summary
    assert workers.replay("warm") == 41
    workers.close()
    other = run("warm", _csv(tmp_path, "green,1", "grey,0", name="other.csv"), "--create")
    assert (other.exit_code, other.stderr) == (2, "Not imported: There is already an experiment 'warm'.\n")


def test_a_warm_start_with_settings(run: Run, database_url: str, tmp_path: Path) -> None:
    """As `POST /v1/experiments` takes them; where they name the arms, a line of another one is bad and nothing is made."""
    settings = tmp_path / "settings.json"
    arms = [{"key": "old", "name": "Old"}, {"key": "new"}, {"key": "untried"}]
    settings.write_text(json.dumps({"arms": arms, "control": "old", "reward": {"kind": "real"}, "tags": ["past"]}))
    file = _csv(tmp_path, "new,1.5", "old,-3")
    assert run("warm", _csv(tmp_path, "newer,1", name="bad.csv"), "--create", "--settings", settings).exit_code == 1
    rehearsed = run("warm", file, "--create", "--settings", settings, "--dry-run")
    assert (rehearsed.exit_code, rehearsed.stdout) == (0, "warm: a dry run: 2 lines: 2 recorded.\n")
    with Rows(database_url) as rows:
        assert rows.query("SELECT count(*) FROM experiments") == [(0,)]
    assert run("warm", file, "--create", "--settings", settings).exit_code == 0
    assert _counted(database_url, "warm") == [(1, "-3"), (1, "3/2^1"), (0, "0")]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"status": "draft"}, "A draft takes no data"),
        ({"rewards": {}}, "/rewards"),
        ({"reward": {"kind": "some"}}, "/kind"),
        ({"arms": [{"key": "a"}]}, "/arms"),
        ([], "no JSON object"),
    ],
)
def test_settings_that_make_no_experiment(run: Run, database_url: str, tmp_path: Path, settings: object, said: str) -> None:
    """A sentence that names the field, and nothing is made."""
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    file = _csv(tmp_path, "a,1", *([] if "arms" in str(settings) else ["b,0"]))
    refused = run("warm", file, "--create", "--settings", tmp_path / "settings.json")
    assert refused.exit_code == 2
    assert said in refused.stderr
    with Rows(database_url) as rows:
        assert rows.query("SELECT count(*) FROM experiments") == [(0,)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope", "past.csv"], "There is no experiment 'nope'."),
        (["e", "none.csv"], "No such file or directory"),
        (["e", "past.csv", "--column", "reward"], "reward=converted"),
        (["e", "past.csv", "--column", "id=order"], "There is no column 'order'."),
        (["e", "past.csv", "--source", "x" * 300], "1 to 200"),
        (["e", "past.csv", "--settings", "past.csv"], "--settings goes with --create"),
        (["Not a key", "past.csv", "--create"], "/key"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("experiment")
def test_what_cannot_be_imported(run: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    """One sentence each."""
    _csv(tmp_path, "a,1", "b,0")
    refused = run(*[tmp_path / one if one.endswith(".csv") else one for one in arguments])
    assert refused.exit_code == 2
    assert said in refused.stderr


def test_an_experiment_that_takes_no_data(run: Run, database_url: str, experiment: str, tmp_path: Path) -> None:
    """An archived one says so before anything is read."""
    workers = Workers(database_url, 1)
    workers.submit(experiment, LifecycleMove("conclude", "a"))
    workers.submit(experiment, LifecycleMove("archive"))
    workers.close()
    refused = run(experiment, _csv(tmp_path, "a,1"))
    assert (refused.exit_code, refused.stderr) == (2, "Not imported: Experiment 'e' is archived and takes no rewards.\n")


def test_the_first_command_of_all_may_be_a_warm_start(tmp_path: Path) -> None:
    """An embedded database that is not there yet is made."""
    url = f"sqlite:///{tmp_path}/new/bestarm.db"
    file = _csv(tmp_path, "a,1", "b,0")
    rehearsed = CliRunner().invoke(app, ["import", "warm", str(file), "--create", "--dry-run"], env={"BESTARM_DATABASE_URL": url})
    assert rehearsed.exit_code == 2
    assert not (tmp_path / "new").exists()
    made = CliRunner().invoke(app, ["import", "warm", str(file), "--create"], env={"BESTARM_DATABASE_URL": url})
    assert (made.exit_code, made.stdout) == (0, "warm: 2 lines: 2 recorded.\n")
    assert _counted(url, "warm") == [(1, "1"), (1, "0")]
