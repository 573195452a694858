"""Tests are marked by what they use, and one that uses more than its marks say fails."""

from __future__ import annotations

import os

import pytest

_FILE = """
from __future__ import annotations
import subprocess, sys
import pytest

class Server: ...
class Browser: ...

@pytest.fixture
def running() -> Server:
    return Server()

@pytest.fixture
def address(running) -> str:
    return "http://"

@pytest.fixture
def window() -> Browser:
    return Browser()

@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request) -> str:
    return request.param

def test_alone(): ...
def test_over_http(address): ...
def test_on_screen(window): ...
def test_of_both(engine): ...

@pytest.mark.process
def test_that_says_so():
    subprocess.run([sys.executable, "--version"], check=True)

def test_that_does_not():
    subprocess.run([sys.executable, "--version"], check=True)
"""


@pytest.mark.parametrize(
    ("marks", "chosen"),
    [
        ("process", ["test_over_http", "test_on_screen", "test_of_both[postgresql]", "test_that_says_so"]),
        ("browser", ["test_on_screen"]),
        ("not (process or browser)", ["test_alone", "test_of_both[sqlite]", "test_that_does_not"]),
    ],
)
def test_fixtures_set_the_marks(pytester: pytest.Pytester, marks: str, chosen: list[str]) -> None:
    """By what they return, through other fixtures, and by the engine."""
    pytester.makepyfile(_FILE)
    listed = pytester.runpytest_inprocess("-p", "testing.tiers", "--collect-only", "-q", "-m", marks).outlines
    assert [line.partition("::")[2] for line in listed if "::" in line] == chosen


@pytest.mark.process
def test_a_process_without_the_mark_fails_the_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its author is told which mark it needs; a test with the mark may start what it wants. Where coverage is, nobody watches."""
    for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
        monkeypatch.delenv(name)
    pytester.makepyfile(_FILE)
    result = pytester.runpytest_subprocess("-p", "testing.tiers", "-k", "test_that")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*test_that_does_not starts a process: it needs the mark `process`."])


@pytest.mark.process
def test_two_processes_say_how_much_was_left_out(pytester: pytest.Pytester) -> None:
    """As one process says by itself."""
    pytester.makepyfile(_FILE)
    result = pytester.runpytest_subprocess(
        "-p", "testing.tiers", "-n", "2", "-m", "not (process or browser)", "-k", "not does_not"
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["5 tests were left out by their marks."])
