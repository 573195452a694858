"""The budget that a search finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.simulation.environments import of_means
from service.simulation.session import Session
from studies.horizons import find_horizon


@pytest.mark.study
def test_the_horizon_is_the_first_multiple_of_100_with_the_wanted_error(tmp_path: Path) -> None:
    """Easy arms are told apart soon, hard ones later."""
    with Session(tmp_path, runs=500, seed=1, quiet=True) as session:
        easy = find_horizon(session, of_means([1.0, 0.0]))
        hard = find_horizon(session, of_means([0.2, 0.0]))
    assert easy % 100 == hard % 100 == 0
    assert easy < hard < 1000
