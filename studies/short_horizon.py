"""T = 1,000 with CR starting as late as SR, theta0 = 1/olog K [paper, Figure "modified 4 model experiments"]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.simulation.complexity import olog
from service.simulation.environments import instance
from service.simulation.runner import cell
from studies.lineup import EVERYONE, playable

if TYPE_CHECKING:
    from service.simulation.session import Result, Session

NAME = "short-horizon"
BUDGET = 1000
INSTANCES = ("1", "3", "8", "10")
_CHECKPOINTS = 25


def with_late_start(policy: str, arms: int) -> str:
    """The policy with CR's start moved to where SR drops its first arm."""
    return f"{policy}:theta0={1.0 / olog(arms):.6g}" if policy in ("cr_a", "cr_c") else policy


def run(session: Session) -> list[Result]:
    """Every policy on the four instances that the paper shows."""
    results: list[Result] = []
    for name in INSTANCES:
        environment = instance(name)
        policies = [with_late_start(policy, environment.arms) for policy in playable(EVERYONE, environment, BUDGET)]
        cells = [cell(environment, policy, BUDGET, _CHECKPOINTS) for policy in policies]
        results += session.play(cells, f"instance {name}, T = {BUDGET}")
    return results
