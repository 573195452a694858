"""Coverage follows the first case of a test on each engine, and not the side of a test that talks to a service."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.process
_PASSED = """
def passed(case):
    if case == "first":
        return 3
    if case == "second":
        return 5
    if case == "other engine":
        return 7
    return 8
"""
_FILE = """
from __future__ import annotations
import os
import pytest
from lines import passed

class Server: ...

@pytest.fixture
def running() -> Server:
    return Server()

@pytest.mark.parametrize("case", ["first", "second"])
def test_table(case):
    assert passed(case)
    assert ("COVERAGE_OF_PROGRAMS" in os.environ) == (case == "first")

@pytest.mark.parametrize(("engine", "case"), [("sqlite", "first"), ("postgresql", "other engine")])
def test_engines(engine, case):
    assert passed(case)

@pytest.mark.study
def test_study():
    assert passed("any")

def test_over_http(running):
    assert passed("any")
"""


def test_the_first_case_is_followed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of a second case, of a study and of a client are missing; programs of a second case are not followed either."""
    monkeypatch.setenv("COVERAGE_OF_PROGRAMS", "1")
    monkeypatch.setenv("COVERAGE_FILE", str(pytester.path / "data"))
    pytester.makepyfile(lines=_PASSED, test_lines=_FILE)
    options = ("-p", "testing.tiers", "-p", "testing.measured", "--cov=lines", "--cov-report=term-missing", "--cov-fail-under=0")
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=6)
    result.stdout.re_match_lines([r"lines\.py +8 +2 +75% +5, 8"])
