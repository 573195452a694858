"""`bestarm plan`: one sentence first, in the API's words, without an extra."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from service.simulation.plan_command import register

app = typer.Typer()
register(app)
QUICK = ("--runs", "40")


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and everything printed."""
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, " ".join(result.output.split())


def test_the_answer_is_one_sentence_first() -> None:
    """Visitors, the range, days; then what it rests on."""
    code, text = run("--arms", "3", "--baseline", "0.2", "--lift", "0.2", "--per-day", "100", *QUICK)
    assert code == 0, text
    assert text.startswith("About ")
    assert "visitors (80% of the time between" in text
    assert "at 100 a day." in text
    assert "Until the best arm is separated" in text
    assert "Arms that are equal never separate" in text


def test_what_is_worthwhile_is_planned_until_decided() -> None:
    """And how long it takes among equals."""
    code, text = run("--arms", "3", "--baseline", "0.2", "--lift", "0.2", "--worthwhile", "0.2", *QUICK)
    assert code == 0, text
    assert "Until it is decided" in text
    assert "If no arm is better than another: about" in text


def test_json_has_the_same() -> None:
    """For programs."""
    arguments = ("--means", "0.2,0.5", "--per-day", "100", "--delay-hours", "24", "--json", *QUICK)
    told = json.loads(CliRunner().invoke(app, list(arguments)).output)
    assert told["until"] == "separated"
    assert told["draws"]["low"] > 100
    assert told["days"]["median"] == pytest.approx(told["draws"]["median"] / 100)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("simple_tracking", {"sharpness": 1.0, "guard": 0.0, "ties": "limit"}),
        ("simple_tracking:ties=paper", {"sharpness": 1.0, "guard": 0.0, "ties": "paper"}),
        ("simple_tracking:s=1.5:guard=0.25", {"sharpness": 1.5, "guard": 0.25, "ties": "limit"}),
        ("almost_tracking:n=500:c=0.99", {"kind": "almost_tracking", "batch_size": 500, "sufficiency": 0.99}),
    ],
)
def test_variants_of_a_policy_are_planned_for(name: str, parameters: dict[str, Any]) -> None:
    """By the names that `simulate` takes; their options are those of the experiment, and change what is played."""
    arguments = ("--means", "0.2,0.2,0.4", "--json", *QUICK, "--policy")
    told, plain = (json.loads(CliRunner().invoke(app, [*arguments, each]).output) for each in (name, "uniform"))
    assert {"kind": "simple_tracking", "keeps_floors": True, **parameters}.items() <= told["policy"].items()
    assert told["draws"] != plain["draws"]


@pytest.mark.parametrize(("word", "old"), [("binary", "bernoulli"), ("real", "gaussian")])
def test_the_words_are_the_api_s_and_the_old_ones_still_do(word: str, old: str) -> None:
    """The same plan by either."""
    more = ("--means", "0.2,0.6", "--deviation", "0.5", *QUICK)
    assert run("--kind", word, *more) == run("--kind", old, *more)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Give --arms"),
        (("--arms", "3", "--lift", "0.1"), "Give the baseline"),
        (("--arms", "3", "--baseline", "0.1"), "Give the lift"),
        (("--arms", "3", "--baseline", "0.1", "--lift", "0"), "above 0"),
        (("--arms", "1", "--baseline", "0.1", "--lift", "0.1"), "2 to 100 arms"),
        (("--arms", "1000000000", "--baseline", "0.1", "--lift", "0.1"), "2 to 100 arms"),
        (("--arms", "3", "--baseline", "0.95", "--lift", "0.1"), "from 0 to 1"),
        (("--arms", "3", "--means", "0.1,0.2"), "either --means"),
        (("--means", "0.1,0.1"), "say what is worthwhile"),
        (("--means", "a,b"), "numbers separated by commas"),
        (("--means", "0.1,0.2", "--kind", "real"), "standard deviation"),
        (("--means", "0.1,0.2", "--kind", "cauchy"), "no 'cauchy' rewards"),
        (("--means", "0.1,0.2", "--kind", "bounded", "--min", "1", "--max", "0"), "--min must be below --max"),
        (("--means", "0.1,0.2", "--goal", "win"), "maximize or minimize"),
        (("--means", "0.1,0.2", "--policy", "sr"), "no policy 'sr'"),
        (("--means", "0.1,0.2", "--policy", "auto:s=2"), "no policy 'auto:s=2'"),
        (("--means", "0.1,0.2", "--policy", "simple_tracking:t=2"), "no option 't'"),
        (("--means", "0.1,0.2", "--policy", "simple_tracking:s=0.5"), "1 or more"),
        (("--means", "0.1,0.2", "--policy", "almost_tracking:realised"), "planned batches"),
        (("--means", "0.1,0.2", "--min-share", "0.9"), "sum to at most 1"),
        (("--means", "0.1,0.2", "--expiry-hours", "24"), "--per-day"),
        (("--means", "0.1,0.2", "--delay", "1", "--delay-hours", "1"), "not both"),
        (("--means", "0.1,0.2", "--per-day", "0"), "Visitors a day"),
        (("--means", "0.1,0.2", "--runs", "0"), "number of runs"),
        (("--means", "0.1,0.2", "--seed", "-1"), "seed"),
    ],
)
def test_what_is_missing_is_asked_for(arguments: tuple[str, ...], words: str) -> None:
    """A sentence and exit code 2; nothing is taken as 0."""
    code, text = run(*arguments)
    assert code == 2, text
    assert words in text


@pytest.mark.process
def test_a_plan_needs_no_extra() -> None:
    """It works where numba is not installed."""
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "import typer; from service.simulation.plan_command import register\n"
        "app = typer.Typer(); register(app); app()"
    )
    command = [sys.executable, "-c", program, "--means", "0.2,0.6", *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("About ")
