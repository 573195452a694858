"""Who may do what: which experiments the patterns of a key stand for."""

from __future__ import annotations

import fnmatch
import time

from hypothesis import given
from hypothesis import strategies as st

from service.domain.callers import Caller
from service.domain.limits import LONGEST_KEY

_PATTERNS = st.lists(st.text("ab.*", min_size=1, max_size=8), min_size=1, max_size=3)


@given(_PATTERNS, st.text("ab.", min_size=1, max_size=10))
def test_a_star_stands_for_any_characters_and_all_else_for_itself(patterns: list[str], experiment: str) -> None:
    """A key sees what one of its patterns stands for, and nothing else."""
    seen = Caller(frozenset({"read"}), experiments=tuple(patterns)).sees(experiment)
    assert seen == any(fnmatch.fnmatchcase(experiment, pattern) for pattern in patterns)


def test_no_name_takes_long_to_refuse() -> None:
    """Whatever the patterns are, and however long what a path holds: a worker has one thread for all its callers."""
    patterns = ("*-a-*-a-*", "*a" * 31 + "*b", "team-*-prod-*")
    caller = Caller(frozenset({"read"}), experiments=patterns)
    began = time.perf_counter()
    assert not caller.sees("a" * LONGEST_KEY)
    assert not caller.sees("-a-" * 10_000 + "\n")
    assert time.perf_counter() - began < 1.0
