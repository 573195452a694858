"""Counts depend on the seed and on nothing else; what is finished can be reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.errors import InvalidValue
from service.simulation.runner import RUNS_PER_BLOCK
from service.simulation.session import Session, Unfinished
from tests.simulation.quiet_sessions import CELLS, quiet_session


@pytest.mark.process
def test_two_jobs_give_the_counts_of_one(tmp_path: Path) -> None:
    """The blocks' streams do not know who plays them."""
    with quiet_session(tmp_path / "one") as one, quiet_session(tmp_path / "two", jobs=2) as two:
        alone, together = one.play(CELLS, "one"), two.play(CELLS, "two")
    assert [result.errors for result in alone] == [result.errors for result in together]
    assert all(result.final > 0 for result in alone)


def test_another_seed_gives_other_counts(tmp_path: Path) -> None:
    """And the company a cell is played in does not matter."""
    with (
        quiet_session(tmp_path / "a") as first,
        quiet_session(tmp_path / "b", seed=4) as second,
        quiet_session(tmp_path / "c") as third,
    ):
        a, b, c = first.play(CELLS, "a"), second.play(CELLS, "b"), third.play(CELLS[1:2], "c")
    assert [result.errors for result in a] != [result.errors for result in b]
    assert a[1].errors == c[0].errors


@pytest.mark.parametrize(("runs", "seed", "jobs"), [(0, 1, 1), (10, -1, 1), (10, 1, 0)])
def test_bad_settings(tmp_path: Path, runs: int, seed: int, jobs: int) -> None:
    """Refused before anything is played."""
    with pytest.raises(InvalidValue):
        Session(tmp_path, runs=runs, seed=seed, jobs=jobs)


def test_what_is_finished_can_be_reported(tmp_path: Path) -> None:
    """Without playing more, a cell has the runs of its blocks up to the first hole, and one without any is left out."""
    with quiet_session(tmp_path) as first:
        first.play(CELLS[:1], "first", runs=2 * RUNS_PER_BLOCK)
    with Session(tmp_path, runs=4 * RUNS_PER_BLOCK, seed=3, quiet=True, play_more=False) as gathered:
        results = gathered.play(CELLS, "gathered")
        with pytest.raises(Unfinished):
            gathered.play_one(CELLS[1], "missing")
    assert [(result.cell.policy, result.runs) for result in results] == [("simple_tracking", 2 * RUNS_PER_BLOCK)]
