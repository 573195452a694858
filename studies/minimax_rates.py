"""The worst rate over the ten instances, under H1, H2 and H3 [paper, Table minimax_rates and its restatement with intervals]."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from service.simulation.environments import INSTANCES, instance
from service.simulation.runner import cell
from service.simulation.session import Unfinished
from studies.horizons import find_horizon
from studies.lineup import EVERYONE, playable

if TYPE_CHECKING:
    from service.simulation.session import Result, Session

NAME = "minimax-rates"
_CHECKPOINTS = 10


def run(session: Session) -> list[Result]:
    """Every policy on every instance at that instance's budget.

    Pooled Allocation is left out where the budget is below what it needs; its worst rate is then over fewer instances.
    """
    results: list[Result] = []
    for name in INSTANCES:
        environment = instance(name)
        with suppress(Unfinished):
            budget = find_horizon(session, environment)
            cells = [cell(environment, policy, budget, _CHECKPOINTS) for policy in playable(EVERYONE, environment, budget)]
            results += session.play(cells, f"instance {name}, T = {budget}")
    return results
