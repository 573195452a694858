"""Names, options, and what an algorithm needs."""

from __future__ import annotations

import pytest

from service.errors import InvalidValue
from service.simulation.kernels.catalogue import ALGORITHMS, contender

NAMES = [
    *("simple_tracking", "almost_tracking", "uniform", "sr", "sh", "cr_a", "cr_c", "dsr", "dsh"),
    *("ts_tc", "eb_tc", "eb_tc_eps0", "pooled"),
]


def test_all_names_are_there() -> None:
    """The names that results files use."""
    assert sorted(ALGORITHMS) == sorted(NAMES)


def test_options_have_a_place_in_the_title() -> None:
    """A variant is told apart in tables and figures."""
    assert contender("almost_tracking:realised").title == "Almost Tracking (realised)"
    assert contender("simple_tracking:s=1.5").title == "Simple Tracking (s = 1.5)"
    assert contender("simple_tracking:s=2:guard=0.5:ties=paper").title == "Simple Tracking (s = 2, guard = 0.5, ties = paper)"
    assert contender("ts_tc:binary").title == "TS-TC (binary)"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("best_tracking", "no policy 'best_tracking'"),
        ("sr:s=1", "no option 's'"),
        ("simple_tracking:s=high", "needs a number"),
        ("simple_tracking:s=-1", "must lie between"),
        ("simple_tracking:guard=2", "must lie between"),
        ("almost_tracking:ties=first", "one of paper, limit"),
        ("cr_a:theta0=nan", "must lie between"),
    ],
)
def test_bad_names_are_refused(name: str, words: str) -> None:
    """With a sentence that says what is wrong."""
    with pytest.raises(InvalidValue, match=words):
        contender(name)


@pytest.mark.parametrize(
    ("name", "least"),
    [("uniform", 40), ("sr", 41), ("sh", 240), ("dsr", 240), ("dsr:t1=500", 500), ("almost_tracking", 80), ("pooled", 3280)],
)
def test_the_least_budget(name: str, least: int) -> None:
    """One draw less is refused, naming the least."""
    contender(name).require_budget(40, least)
    with pytest.raises(InvalidValue, match=f"at least {least} draws"):
        contender(name).require_budget(40, least - 1)
