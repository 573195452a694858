"""Plays a cell (an environment, a policy, a budget) many times and counts errors at every checkpoint.

Runs come in blocks of fixed size; each block has its own random stream, made from the seed, the cell and the block's
number. So the counts are the same for any number of jobs, in any order, after any interruption, and whatever else is
studied beside it. Only counts are kept: memory does not grow with runs or draws.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from service.errors import InvalidValue
from service.simulation.environments import KINDS, Environment
from service.simulation.kernels.catalogue import contender

if TYPE_CHECKING:
    from service.policy.base import Ints
    from service.simulation.kernels.traffic import World

RUNS_PER_BLOCK = 250
MOST_RUNS = 100_000_000
MOST_DRAWS = 1_000_000_000

# An arm with less than this part of an equal share of the draws is starved.
STARVED = 0.1

Counts = tuple[int, ...]
Measure: TypeAlias = Literal["error", "starved"]


@dataclass(frozen=True, slots=True)
class Cell:
    """What is run: the counts are of errors at each checkpoint, of which the last is the budget."""

    environment: Environment
    policy: str
    budget: int
    checkpoints: tuple[int, ...]
    measure: Measure = "error"

    def key(self) -> str:
        """Names the random streams and the stored results: everything that could change the counts."""
        world = self.environment
        traffic = f"{world.kind},{world.delay},{int(world.geometric)},{world.loss!r}"
        shape = zlib.crc32(repr(world.means).encode())
        starved = "" if self.measure == "error" else f"|{self.measure}"
        return f"{world.label}|{shape:08x}|{traffic}|{self.policy}|{self.budget}{starved}"

    def require_playable(self) -> None:
        """Raise if it cannot be run."""
        if not 1 <= self.budget <= MOST_DRAWS:
            raise InvalidValue("/budget", f"The budget must lie between 1 and {MOST_DRAWS} draws, not {self.budget}.")
        contender(self.policy).require_budget(self.environment.arms, self.budget)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a cell's runs."""

    cell: Cell
    number: int
    runs: int
    seed: int


def cell(environment: Environment, policy: str, budget: int, checkpoints: int = 1) -> Cell:
    """A cell with so many evenly spaced checkpoints, the last at the budget."""
    times = sorted({max(1, round(budget * step / checkpoints)) for step in range(1, checkpoints + 1)})
    return Cell(environment, policy, budget, tuple(times))


def blocks_of(cell_: Cell, runs: int, seed: int) -> Iterator[Block]:
    """The blocks that make up so many runs."""
    for number, start in enumerate(range(0, runs, RUNS_PER_BLOCK)):
        yield Block(cell_, number, min(RUNS_PER_BLOCK, runs - start), seed)


def stream(seed: int, key: str, number: int) -> np.random.Generator:
    """The random numbers of one block."""
    entropy = np.random.SeedSequence([seed, *key.encode(), number])
    return np.random.Generator(np.random.SFC64(entropy))


def world_of(environment: Environment, *, traced: bool) -> World:
    """The environment's traffic as the compiled code takes it."""
    from service.simulation.kernels.traffic import World  # noqa: PLC0415 - loads numba, which only runs need

    at_once = environment.delay == 0 and environment.loss == 0.0
    plain = environment.kind == "gaussian" and at_once and not traced
    return World(KINDS.index(environment.kind), environment.delay, environment.geometric, environment.loss, plain)


def play_block(block: Block) -> Counts:
    """At every checkpoint the number of runs in error (without a recommendation yet is in error), or with a starved best arm."""
    cell_ = block.cell
    world = cell_.environment
    chosen = contender(cell_.policy)
    play, parameters = chosen.play(), chosen.parameters(world.arms)
    rng = stream(block.seed, cell_.key(), block.number)
    starved = cell_.measure == "starved"
    truth, traffic = world.array(), world_of(world, traced=starved)
    checkpoints: Ints = np.array(cell_.checkpoints, np.int64)
    picks, trace = np.zeros(len(checkpoints), np.int64), np.zeros(cell_.budget if starved else 0, np.int64)
    counts = np.zeros(len(checkpoints), np.int64)
    for _ in range(block.runs):
        picks[:] = -1
        play(truth, traffic, cell_.budget, checkpoints, picks, trace, rng, *parameters)
        if starved:
            drawn = np.cumsum(trace == world.best)[checkpoints - 1]
            counts += drawn < STARVED * checkpoints / world.arms
        else:
            counts += picks != world.best
    return tuple(int(count) for count in counts)
