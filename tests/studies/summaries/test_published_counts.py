"""The published counts on instance 9 beside ours."""

from __future__ import annotations

from pathlib import Path

from studies.summaries import published_counts
from studies.summaries.summary_files import write_summary
from tests.studies.made_up_results import made_up


def test_published_rates_become_errors() -> None:
    """SR's 0.637 at T = 2,000 is 257 errors; an infinite rate is none; DSR's variants share its row."""
    assert published_counts.published_errors("sr", 2000, 348.0) == 257
    assert published_counts.published_errors("sr", 10_000, 348.0) == 0
    assert published_counts.published_errors("dsr:t1=213", 2000, 348.0) == published_counts.published_errors("dsr", 2000, 348.0)
    assert published_counts.published_errors("uniform", 2000, 348.0) is None


def test_counts_are_judged_with_holm() -> None:
    """SR agrees with its published count, SH does not; the independent simulator agrees with both of these."""
    summary = published_counts.summarise([made_up("9", "sr", 2000, 257), made_up("9", "sh", 2000, 544)])
    assert [row["differs"] for row in summary["rows"]] == [False, True]
    assert [row["differs"] for row in summary["independent"]] == [False, False]


def test_the_budgets_are_drawn(tmp_path: Path) -> None:
    """A point for every policy and budget with an error; none of the policy that never errs."""
    found = [made_up("9", "sr", 2000, 257), made_up("9", "uniform", 2000, 2500), made_up("9", "uniform", 10_000, 250)]
    write_summary("budgets", tmp_path, [*found, made_up("9", "cr_a", 2000, 0)], {"seed": 1})
    drawn = (tmp_path / "by-budget.svg").read_text()
    assert drawn.count('aria-roledescription="point"') == 3
    assert [title in drawn for title in (">SR<", ">Uniform<", ">CR-A<")] == [True, True, False]
