"""Any policies on any instance, side by side: what `bestarm simulate` plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.errors import InvalidValue
from service.simulation.kernels.catalogue import resolved_name
from service.simulation.runner import cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.environments import Environment
    from service.simulation.session import Result, Session

_CHECKPOINTS = 50


def compare(session: Session, environment: Environment, policies: Sequence[str], budget: int) -> list[Result]:
    """Every policy at the budget, with its error on the way there."""
    if not policies:
        raise InvalidValue("/policies", "Name at least one policy.")
    if budget < 1:
        raise InvalidValue("/budget", f"The budget must be positive, not {budget}.")
    named = dict.fromkeys(resolved_name(policy, environment) for policy in policies)
    cells = [cell(environment, policy, budget, _CHECKPOINTS) for policy in named]
    return session.play(cells, f"{environment.label}, T = {budget}")
