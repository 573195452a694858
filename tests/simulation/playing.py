"""Plays a compiled algorithm once and shows what it drew and recommended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.policy.base import Ints
from service.simulation.environments import Environment, Kind, of_means
from service.simulation.kernels.catalogue import contender
from service.simulation.runner import stream, world_of


def play_once(
    environment: Environment, policy: str, budget: int, checkpoints: Sequence[int] = (), seed: int = 1, *, traced: bool = True
) -> tuple[Ints, Ints]:
    """The arms drawn (empty unless traced) and the recommendations at the checkpoints, the last at the budget."""
    chosen = contender(policy)
    points = np.array([*checkpoints, budget], np.int64)
    picks, trace = np.full(len(points), -1, np.int64), np.full(budget if traced else 0, -1, np.int64)
    rng = stream(seed, f"test {policy}", 0)
    world = world_of(environment, traced=traced)
    chosen.play()(environment.array(), world, budget, points, picks, trace, rng, *chosen.parameters(environment.arms))
    return trace, picks


def counts_of(trace: Ints, arms: int) -> list[int]:
    """How often each arm was drawn."""
    return [int(count) for count in np.bincount(trace[trace >= 0], minlength=arms)]


def certain(means: Sequence[float]) -> Environment:
    """Arms whose rewards are 0 or 1 for sure, so that a whole run can be foretold."""
    kind: Kind = "bounded"
    return of_means(list(means), kind, "certain")
