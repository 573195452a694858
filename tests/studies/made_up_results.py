"""Results that nobody played, to see what is concluded from them."""

from __future__ import annotations

from service.simulation.environments import instance
from service.simulation.runner import cell
from service.simulation.session import Result


def made_up(name: str, policy: str, budget: int, errors: int, runs: int = 10_000) -> Result:
    """So many errors of the policy at the budget."""
    return Result(cell(instance(name), policy, budget), runs, (errors,))
