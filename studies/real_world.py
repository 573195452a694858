"""PoE over time on the two real-world instances [paper, Figure two_plots]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.simulation.environments import instance
from service.simulation.runner import cell
from studies.lineup import EVERYONE, playable

if TYPE_CHECKING:
    from service.simulation.session import Result, Session

NAME = "real-world"
BUDGETS = {"open_bandit": 3000, "movielens": 10_000}
_CHECKPOINTS = 50


def run(session: Session) -> list[Result]:
    """Every policy on both instances at the paper's budgets."""
    results: list[Result] = []
    for name, budget in BUDGETS.items():
        environment = instance(name)
        cells = [cell(environment, policy, budget, _CHECKPOINTS) for policy in playable(EVERYONE, environment, budget)]
        results += session.play(cells, f"{name}, T = {budget}")
    return results
