"""A small session, and cells for it."""

from __future__ import annotations

from pathlib import Path

from service.simulation.environments import of_means
from service.simulation.runner import RUNS_PER_BLOCK, cell
from service.simulation.session import Session


def quiet_session(folder: Path, jobs: int = 1, seed: int = 3) -> Session:
    """A quiet session of three blocks a cell."""
    return Session(folder, runs=2 * RUNS_PER_BLOCK + 10, seed=seed, jobs=jobs, quiet=True)


CELLS = [cell(of_means([0.4, 0.0, 0.1]), policy, 60, 4) for policy in ("simple_tracking", "sr", "ts_tc")]
