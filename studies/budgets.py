"""Instance 9 at three budgets [paper, Table toptworate]: whose error falls exponentially, and whose does not.

With the sensitivity of the doubling algorithms to their first epoch, which the paper does not fix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.simulation.environments import instance
from service.simulation.runner import cell
from studies.lineup import EVERYONE, playable

if TYPE_CHECKING:
    from service.simulation.session import Result, Session

NAME = "budgets"
BUDGETS = (2000, 10_000, 20_000)
SENSITIVITY = ("dsr:t1=213", "dsh:t1=213")


def run(session: Session) -> list[Result]:
    """Every policy on instance 9."""
    environment = instance("9")
    results: list[Result] = []
    for budget in BUDGETS:
        policies = playable((*EVERYONE, *SENSITIVITY), environment, budget)
        results += session.play([cell(environment, policy, budget) for policy in policies], f"T = {budget}")
    return results
