"""The command line: what it writes, and how it refuses."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from service.simulation import plan_command, simulation_commands
from service.simulation.environments import of_means
from service.simulation.kernels.catalogue import resolved_name

app = typer.Typer()
simulation_commands.register(app)
plan_command.register(app)  # a program with one command has no name for it


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and everything printed."""
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_simulate_writes_its_results(tmp_path: Path) -> None:
    """results.csv with the promised columns, results.json with the settings, a figure; and says so."""
    out = tmp_path / "out"
    code, text = run(
        "simulate",
        "--instance",
        "9",
        "--budget",
        "300",
        "--runs",
        "60",
        "--policies",
        "simple_tracking,sr",
        "--seed",
        "1",
        "--out",
        str(out),
    )
    assert code == 0, text
    with (out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["instance"], row["policy"], row["budget"], row["runs"]) for row in rows] == [
        ("9", "simple_tracking", "300", "60"),
        ("9", "sr", "300", "60"),
    ]
    assert all(0 <= int(row["errors"]) <= 60 for row in rows)
    assert json.loads((out / "results.json").read_text())["settings"]["seed"] == 1
    assert (out / "curves.svg").read_text().startswith("<svg")
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("simulate", "--instance", "9", "--budget", "2000", "--policies", "magic"), "no policy 'magic'"),
        (("simulate", "--means", "0.5", "--budget", "100"), "number of arms"),
        (("simulate", "--means", "0.5,0.5", "--budget", "100"), "no best arm"),
        (("simulate", "--means", "a,b", "--budget", "100"), "numbers separated by commas"),
        (("simulate", "--instance", "9", "--budget", "-5"), "must be positive"),
        (("simulate", "--instance", "9", "--budget", "100", "--policies", "sh"), "at least 240 draws"),
        (("simulate", "--instance", "9", "--means", "1,2", "--budget", "100"), "either --instance or --means"),
        (("simulate", "--instance", "9", "--budget", "100", "--runs", "0"), "number of runs"),
        (("simulate", "--means", "0.1,0.2", "--kind", "cauchy", "--budget", "100"), "no 'cauchy' rewards"),
    ],
)
def test_bad_input_exits_with_2_and_a_sentence(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """No traceback, exit code 2."""
    code, text = run(*arguments, "--out", str(tmp_path))
    assert code == 2
    assert words in " ".join(text.split())
    assert "Traceback" not in text


@pytest.mark.parametrize(("word", "old"), [("binary", "bernoulli"), ("real", "gaussian")])
def test_the_words_for_rewards_are_those_of_the_api(tmp_path: Path, word: str, old: str) -> None:
    """And the names of the distributions, which came first, mean the same."""
    for name in (word, old):
        arguments = ("--means", "0.2,0.7", "--budget", "40", "--runs", "20", "--policies", "auto", "--kind", name)
        code, text = run("simulate", *arguments, "--out", str(tmp_path / name))
        assert code == 0, text
    assert (tmp_path / word / "results.csv").read_text() == (tmp_path / old / "results.csv").read_text()


def test_auto_is_what_a_new_experiment_would_have(tmp_path: Path) -> None:
    """It is shown as what it became, once if it is named twice, beside variants of the same policy."""
    became = resolved_name("auto", of_means([0.1, 0.1, 0.4], "bernoulli"))
    assert became.startswith("simple_tracking")
    policies = f"auto,{became},simple_tracking:ties=paper,simple_tracking:s=1.5:guard=0.25"
    arguments = ("--means", "0.1,0.1,0.4", "--kind", "binary", "--budget", "60", "--runs", "20", "--policies", policies)
    code, text = run("simulate", *arguments, "--out", str(tmp_path))
    assert code == 0, text
    with (tmp_path / "results.csv").open() as file:
        named = [row["policy"] for row in csv.DictReader(file)]
    assert named == [became, "simple_tracking:ties=paper", "simple_tracking:s=1.5:guard=0.25"]
    assert "…" not in text  # the screen tells variants apart, too


def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    """A file where the folder should be."""
    (tmp_path / "file").write_text("")
    code, text = run("simulate", "--means", "0,1", "--budget", "50", "--out", str(tmp_path / "file"))
    assert code == 2
    assert "Cannot write" in text


@pytest.mark.process
def test_importing_the_commands_loads_no_numba() -> None:
    """`bestarm serve` starts without the extra."""
    program = (
        "import sys; import service.simulation.simulation_commands; sys.exit('numba' in sys.modules or 'joblib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.process
@pytest.mark.parametrize("missing", ["numba", "vl_convert"])
def test_a_missing_extra_is_named(tmp_path: Path, missing: str) -> None:
    """Without numba, or without what draws the figures: the command to install it, exit code 2."""
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import typer; from service.simulation import plan_command, simulation_commands\n"
        "app = typer.Typer(); simulation_commands.register(app); plan_command.register(app); app()"
    )
    command = [sys.executable, "-c", program, "simulate", "--instance", "9", "--budget", "100", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'bestarm[sim]'" in done.stderr
