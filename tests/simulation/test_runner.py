"""What is played, and how its counts come about."""

from __future__ import annotations

from service.simulation.environments import instance, of_means
from service.simulation.runner import Cell, blocks_of, cell, play_block

ENVIRONMENT = of_means([0.4, 0.0, 0.1])


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


def test_instance_nine_is_as_hard_as_published() -> None:
    """Simple Tracking errs in about 1% of runs at T = 2,000 (the full comparison is in the budgets study)."""
    counts = [play_block(block)[0] for block in blocks_of(cell(instance("9"), "simple_tracking", 2000), 1000, 20260)]
    assert 1 <= sum(counts) <= 25
