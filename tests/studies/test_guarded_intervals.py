"""Intervals of the geometric means: over environments, each with all its budgets; the page has those of the file."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from studies.error_comparisons import compared
from studies.guarded_choice import by_group
from studies.guarded_extension import CHOSEN, FOLDER, judged_counts
from studies.guarded_intervals import extension_counts, interval, sums_by_environment
from tests.docs.texts import text_of


def test_an_environment_is_drawn_with_all_its_comparisons() -> None:
    """The interval lies between the least and the largest ratio of an environment; where all are alike it is a point."""
    rng = np.random.default_rng(1)
    spread = interval(np.array([[math.log(ratio) * 4, 4] for ratio in (0.5, 1.0, 1.0, 2.0)]), rng)
    assert spread["ratio"] == pytest.approx(1.0)
    assert 0.5 <= spread["low"] < 0.8
    assert 1.25 < spread["high"] <= 2.0
    alike = interval(np.array([[math.log(0.5) * 3, 3.0]] * 5), rng)
    assert (alike["low"], alike["high"]) == (pytest.approx(0.5), pytest.approx(0.5))


def test_the_page_has_the_means_of_the_counts_and_their_intervals() -> None:
    """Each ratio is that of the comparisons, and stands in docs/guarded-weights.md with its interval."""
    counts, page = {**judged_counts(), **extension_counts()}, text_of("docs/guarded-weights.md")
    found = json.loads((FOLDER / "intervals.json").read_text())
    for other, groups in found.items():
        pairs = by_group(counts, CHOSEN, other)
        for group in ("Gaussian rewards", "binary rewards", "bounded rewards"):
            if group in groups:
                one = groups[group]
                assert one["ratio"] == pytest.approx(compared(pairs[group])["ratio"])
                assert one["environments"] == len(sums_by_environment(counts, other, group))
                assert f"{one['ratio']:.2f} ({one['low']:.2f} to {one['high']:.2f})" in page
