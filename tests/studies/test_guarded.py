"""The study of guarded weights: its environments, the rule of its choice, and the whole of it with few runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from service.simulation.complexity import h1
from service.simulation.environments import of_means
from service.simulation.runner import Cell
from service.simulation.session import Result, Session
from studies import guarded
from studies.error_comparisons import compared, holm_rejections
from studies.gap_structures import STRUCTURES, all_environments, environment
from studies.guarded_choice import chosen_of
from studies.summaries.summary_files import write_summary


def test_environments_are_as_hard_as_their_size_says() -> None:
    """Gaussian gaps have the H1 of their number of arms, whatever the structure; labels are unique."""
    for structure in STRUCTURES:
        assert h1(environment("gaussian", 10, structure).means) == pytest.approx(60.0)
    labels = [one.label for one in all_environments()]
    assert len(set(labels)) == len(labels)
    assert {one.arms for one in all_environments()} == {2, 3, 5, 10, 40, 200, 1000}
    assert {one.delay for one in all_environments()} == {0, 500}


def test_the_best_arm_has_no_fixed_place() -> None:
    """Ties go to the lowest position, so the best arm must not always stand there."""
    places = {environment("bernoulli", 10, structure).best for structure in STRUCTURES}
    assert len(places) > 2


def test_holm_rejects_the_smallest_first_and_stops() -> None:
    """Each p-value is held against the level over those that are left; behind the first that stands nothing falls."""
    assert holm_rejections([0.04, 0.001, 0.02]) == [True, True, True]
    assert holm_rejections([0.04, 0.001, 0.03]) == [False, True, False]
    assert holm_rejections([0.02, 0.03]) == [True, True]
    assert holm_rejections([]) == []


def test_a_comparison_counts_what_is_significant() -> None:
    """A clear win, a clear loss and a draw; the ratio is the geometric mean."""
    found = compared([((1, 1000), (100, 1000)), ((100, 1000), (1, 1000)), ((50, 1000), (50, 1000))])
    assert (found["better"], found["worse"], found["of"]) == (1, 1, 3)
    assert found["ratio"] == pytest.approx(1.0)


def results_of(errors: dict[str, tuple[int, int]]) -> list[Result]:
    """Made-up counts on two environments, of 1,000 runs."""
    worlds = [
        of_means([0.0, 1.0], label="gaussian K=2 equal"),
        of_means([0.1, 0.2], "bernoulli", "bernoulli K=10 random rate=0.5"),
    ]
    return [
        Result(Cell(world, policy, 100, (100,)), 1000, (count,))
        for policy, counts in errors.items()
        for world, count in zip(worlds, counts, strict=True)
    ]


@pytest.mark.parametrize(
    ("errors", "chosen"),
    [
        ({"base": (100, 100), "a": (80, 80), "b": (70, 70)}, "b"),
        ({"base": (100, 100), "a": (80, 80), "b": (10, 160)}, "a"),
        ({"base": (100, 100), "a": (95, 95), "b": (50, 110)}, "a"),
        ({"base": (100, 100), "a": (110, 90), "b": (100, 101)}, "base"),
    ],
)
def test_the_choice_is_the_plans(errors: dict[str, tuple[int, int]], chosen: str) -> None:
    """The least ratio, but for those that lose significantly anywhere or in the mean of a group; else the base."""
    assert chosen_of(results_of(errors), "base", ["a", "b"]) == chosen


@pytest.mark.study
def test_the_study_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small environments: budgets, candidates, the judgement of the chosen one on fresh rewards, files and figure."""
    worlds = [environment("gaussian", 3, "linear"), environment("bernoulli", 3, "equal")]
    monkeypatch.setattr(guarded, "all_environments", lambda: worlds)
    with Session(tmp_path, runs=60, seed=1, quiet=True) as session:
        results = guarded.run(session)
    write_summary("guarded", tmp_path, results, {"study": "guarded", "seed": 1, "runs": 60, "command": "test"})
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["chosen"] in (guarded.BASE, *guarded.CANDIDATES)
    assert set(summary["candidates"]) == {guarded.UNGUARDED, *guarded.CANDIDATES}
    judged = set(summary["judgement"]) | {summary["chosen"]}
    assert judged >= {guarded.BASE, *guarded.ANYTIME, *guarded.KNOWING, *guarded.RIGHT_VARIANCE}
    ratios = [group["ratio"] for groups in summary["judgement"].values() for group in groups.values()]
    assert np.isfinite(ratios).all()
    assert (tmp_path / "against.svg").read_text().startswith("<svg")
