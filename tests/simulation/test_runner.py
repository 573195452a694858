"""Counts depend on the seed and on nothing else; finished blocks are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.errors import InvalidValue
from service.simulation.environments import instance, of_means
from service.simulation.journal import NAME
from service.simulation.runner import RUNS_PER_BLOCK, Cell, blocks_of, cell, play_block
from service.simulation.session import Session, Unfinished

ENVIRONMENT = of_means([0.4, 0.0, 0.1])


def session(folder: Path, jobs: int = 1, seed: int = 3) -> Session:
    """A quiet session of three blocks a cell."""
    return Session(folder, runs=2 * RUNS_PER_BLOCK + 10, seed=seed, jobs=jobs, quiet=True)


CELLS = [cell(ENVIRONMENT, policy, 60, 4) for policy in ("simple_tracking", "sr", "ts_tc")]


def test_two_jobs_give_the_counts_of_one(tmp_path: Path) -> None:
    """The blocks' streams do not know who plays them."""
    with session(tmp_path / "one") as one, session(tmp_path / "two", jobs=2) as two:
        alone, together = one.play(CELLS, "one"), two.play(CELLS, "two")
    assert [result.errors for result in alone] == [result.errors for result in together]
    assert all(result.final > 0 for result in alone)


def test_another_seed_gives_other_counts(tmp_path: Path) -> None:
    """And the company a cell is played in does not matter."""
    with session(tmp_path / "a") as first, session(tmp_path / "b", seed=4) as second, session(tmp_path / "c") as third:
        a, b, c = first.play(CELLS, "a"), second.play(CELLS, "b"), third.play(CELLS[1:2], "c")
    assert [result.errors for result in a] != [result.errors for result in b]
    assert a[1].errors == c[0].errors


def test_an_interrupted_study_goes_on(tmp_path: Path) -> None:
    """Blocks in the journal are not played again; a line cut off by a crash is."""
    with session(tmp_path) as first:
        whole = [result.errors for result in first.play(CELLS, "whole")]
    journal = tmp_path / NAME
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text(lines[0] + lines[1] + lines[2][:25])
    with session(tmp_path) as second:
        again = [result.errors for result in second.play(CELLS, "again")]
    assert again == whole
    assert journal.read_text().startswith(lines[0] + lines[1])
    assert len(journal.read_text().splitlines()) == len(lines)


@pytest.mark.parametrize("text", ["not json\n", '{"other": 1}\n', "[]\n"])
def test_a_foreign_journal_is_refused(tmp_path: Path, text: str) -> None:
    """With a sentence, and left as it is."""
    (tmp_path / NAME).write_text(text)
    with pytest.raises(InvalidValue, match="does not hold the parts of a study"):
        session(tmp_path)
    assert (tmp_path / NAME).read_text() == text


def test_checkpoints_end_at_the_budget() -> None:
    """Evenly spaced, without doubles."""
    assert cell(ENVIRONMENT, "sr", 100, 4).checkpoints == (25, 50, 75, 100)
    assert cell(ENVIRONMENT, "sr", 3, 10).checkpoints == (1, 2, 3)


def test_starved_runs_are_counted() -> None:
    """Uniform never starves an arm; a sharpness of 10 often starves the best."""
    points = (4000,)
    hard = instance("7")
    fair = Cell(hard, "uniform", 4000, points, "starved")
    sharp = Cell(hard, "simple_tracking:s=10", 4000, points, "starved")
    assert play_block(next(blocks_of(fair, 50, 1))) == (0,)
    assert play_block(next(blocks_of(sharp, 50, 1)))[0] > 10


@pytest.mark.parametrize(("runs", "seed", "jobs"), [(0, 1, 1), (10, -1, 1), (10, 1, 0)])
def test_bad_settings(tmp_path: Path, runs: int, seed: int, jobs: int) -> None:
    """Refused before anything is played."""
    with pytest.raises(InvalidValue):
        Session(tmp_path, runs=runs, seed=seed, jobs=jobs)


def test_instance_nine_is_as_hard_as_published() -> None:
    """Simple Tracking errs in about 1% of runs at T = 2,000 (the full comparison is in the budgets study)."""
    counts = [play_block(block)[0] for block in blocks_of(cell(instance("9"), "simple_tracking", 2000), 1000, 20260)]
    assert 1 <= sum(counts) <= 25


def test_what_is_finished_can_be_reported(tmp_path: Path) -> None:
    """Without playing more, a cell has the runs of its blocks up to the first hole, and one without any is left out."""
    with session(tmp_path) as first:
        first.play(CELLS[:1], "first", runs=2 * RUNS_PER_BLOCK)
    with Session(tmp_path, runs=4 * RUNS_PER_BLOCK, seed=3, quiet=True, play_more=False) as gathered:
        results = gathered.play(CELLS, "gathered")
        with pytest.raises(Unfinished):
            gathered.play_one(CELLS[1], "missing")
    assert [(result.cell.policy, result.runs) for result in results] == [("simple_tracking", 2 * RUNS_PER_BLOCK)]
