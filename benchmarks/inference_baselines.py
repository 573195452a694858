"""TS-TC, EB-TC and EB-TC-eps0 in many runs side by side, by the names that the simulator has for them.

What they decide by is the simulator's compiled code; only the few lines that put it together stand here once more, because a
function around them makes the kernels a third slower. A test holds both to the same arms, draw for draw.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.inference_instances import Floats, Ints
from service.simulation.kernels.catalogue import contender
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.eb_tc import transport_costs
from service.simulation.kernels.eb_tc_eps0 import slack_costs
from service.simulation.kernels.normals import fill_normals, seeded
from service.simulation.kernels.top_two import lowest, refresh_variances, variance_of_reward
from service.simulation.kernels.traffic import MEANS, OBSERVED, SUMS, best_of
from service.simulation.kernels.ts_tc import random_lowest, sampled_leader

if TYPE_CHECKING:
    from benchmarks.inference_lockstep import Runs

BASELINES = ("ts_tc", "eb_tc", "eb_tc_eps0", "ts_tc:binary", "eb_tc:binary", "eb_tc_eps0:binary")
_LEADER_SHARE = 0.5


class Baselines:
    """One of them in every run."""

    def __init__(self, name: str, runs: int, arms: int, rng: np.random.Generator) -> None:
        self._kind, self._rng = name.partition(":")[0], rng
        *self._slack, self._binary = contender(name).parameters(arms)
        self._bits = seeded(rng) if self._kind == "ts_tc" else np.ones(4, np.uint64)
        # Of EB-TC-eps0: how often each arm led, and how often it was drawn then.
        self._led = np.zeros((2, runs, arms))

    def next_arms(self, state: Runs) -> Ints:
        """The arm of each run; first each once."""
        runs, arms = state.means.shape
        drawn = int(state.counts[0].sum())
        if drawn < arms:
            return np.full(runs, drawn)
        books = np.zeros((5, runs, arms))
        books[OBSERVED], books[MEANS], books[SUMS] = state.counts, state.means, np.rint(state.counts * state.means)
        books = np.ascontiguousarray(books.swapaxes(0, 1))
        found: Ints
        if self._kind == "ts_tc":
            found = _ts_tc(books, self._binary, self._bits, self._rng)
        elif self._kind == "eb_tc":
            found = _eb_tc(books, self._binary, self._rng)
        else:
            found = _eb_tc_eps0(books, self._binary, self._slack[0], self._led)
        return found


@compiled
def _ts_tc(books: Floats, binary: bool, bits: NDArray[np.uint64], rng: np.random.Generator) -> Ints:  # noqa: FBT001 - compiled code takes no keywords
    runs, _, arms = books.shape
    found, variances, costs, normals = np.zeros(runs, np.int64), np.ones(arms), np.zeros(arms), np.zeros(arms)
    for run in range(runs):
        book = books[run]
        refresh_variances(book, variances, 0, True, binary)
        fill_normals(bits, normals)
        arm = sampled_leader(book[MEANS], np.sqrt(variances), normals)
        if rng.random() >= _LEADER_SHARE:
            transport_costs(book[MEANS], variances, arm, costs)
            arm = random_lowest(costs, rng)
        found[run] = arm
    return found


@compiled
def _eb_tc(books: Floats, binary: bool, rng: np.random.Generator) -> Ints:  # noqa: FBT001 - compiled code takes no keywords
    runs, _, arms = books.shape
    found, variances, costs = np.zeros(runs, np.int64), np.ones(arms), np.zeros(arms)
    for run in range(runs):
        book = books[run]
        refresh_variances(book, variances, 0, True, binary)
        arm = best_of(book[MEANS])
        if rng.random() >= _LEADER_SHARE:
            transport_costs(book[MEANS], variances, arm, costs)
            arm = lowest(costs)
        found[run] = arm
    return found


@compiled
def _eb_tc_eps0(books: Floats, binary: bool, slack: float, led: Floats) -> Ints:  # noqa: FBT001 - compiled code takes no keywords
    runs, _, arms = books.shape
    found, variances, costs = np.zeros(runs, np.int64), np.ones(arms), np.zeros(arms)
    for run in range(runs):
        book, times, drawn = books[run], led[0, run], led[1, run]
        refresh_variances(book, variances, 0, True, binary)
        arm = best_of(book[MEANS])
        times[arm] += 1.0
        if drawn[arm] <= 0.5 * times[arm]:
            drawn[arm] += 1.0
        else:
            unit = math.sqrt(variance_of_reward(book, arm, binary))
            slack_costs(book[MEANS], variances, arm, slack * unit, costs)
            arm = lowest(costs)
        found[run] = arm
    return found
