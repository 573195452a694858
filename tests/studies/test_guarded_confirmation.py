"""The confirmation against TS-TC: fresh environments of the same descriptions, as many as its plan's power asks for."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from studies.count_files import read_counts
from studies.guarded_confirmation import AGAINST, TIMES, confirmation, gaussian_environments, measure
from studies.guarded_extension import CHOSEN, FOLDER, judged_counts
from studies.guarded_intervals import extension_counts, sums_by_environment
from tests.docs.texts import text_of


def test_every_description_is_drawn_anew_as_often_as_planned() -> None:
    """As many arms with as late rewards, under labels of their own; random gaps are other ones each time."""
    known, fresh = gaussian_environments(), confirmation()
    assert len({each.label for each in fresh}) == len(fresh) == TIMES * len(known)
    assert Counter(each.label.partition(" draw=")[0] for each in fresh) == {each.label: TIMES for each in known}
    drawn = {each.label: sorted(each.means) for each in (*known, *fresh)}
    again = [drawn["gaussian K=10 random"], *(drawn[f"gaussian K=10 random draw={draw}"] for draw in range(1, TIMES + 1))]
    assert len({tuple(means) for means in again}) == TIMES + 1
    assert drawn["gaussian K=10 linear draw=1"] == pytest.approx(drawn["gaussian K=10 linear"])


def test_the_number_of_environments_follows_from_the_variance_that_was_seen() -> None:
    """They show a ratio of 0.88 with a power of 0.8 if a log ratio varies as it did in the forty environments."""
    sums = sums_by_environment({**judged_counts(), **extension_counts()}, AGAINST, "Gaussian rewards")
    deviation = (sums[:, 0] / sums[:, 1]).std(ddof=1)
    needed = ((norm.ppf(0.975) + norm.ppf(0.8)) * deviation / math.log(0.88)) ** 2
    assert 0.9 * len(confirmation()) < needed <= len(confirmation())


def test_the_measure_is_the_mean_of_the_log_ratios_also_by_budget_and_arms() -> None:
    """With a third of the errors everywhere each of its ratios is a third; budgets count from an environment's first."""
    counts = {
        (f"gaussian K={arms} equal draw={draw}", arms * budget): {CHOSEN: (10, 1000), AGAINST: (31, 1000)}
        for arms in (2, 10, 200)
        for draw in (1, 2)
        for budget in (50, 100, 150)
    }
    found = measure(counts)
    assert [one["comparisons"] for one in (found["all"], *found["by budget"], *found["by arms"].values())] == [
        18,
        6,
        6,
        6,
        6,
        6,
        6,
    ]
    assert np.allclose([found["all"]["ratio"], found["all"]["low"], found["by arms"]["2 to 5 arms"]["high"]], 1.0 / 3.0)


def test_the_page_has_the_measure_of_all_planned_environments() -> None:
    """The file follows from the counts, and every ratio of it stands on the page with its interval."""
    counts = read_counts(FOLDER / "confirmation.csv")
    found, page = measure(counts), text_of("docs/guarded-weights.md")
    assert {label for label, _ in counts} == {each.label for each in confirmation()}
    assert found == json.loads((FOLDER / "confirmation.json").read_text())
    for one in (found["all"], *found["by budget"], *found["by arms"].values()):
        assert f"{one['ratio']:.2f} ({one['low']:.2f} to {one['high']:.2f})" in page
    assert f"deviation of {found['deviation']:.2f}" in page
