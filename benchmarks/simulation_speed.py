"""How fast the simulator is, as ratios measured in one run, because absolute speeds vary with the machine and its load.

1. Simple Tracking at K = 40 (instance 9, T = 20,000): draws per cpu-second; against only drawing the same normals, one a draw, by
   the same generator in compiled code; and against a straightforward numpy version that vectorises over runs and arms. Its
   weights have s = 1; beside it the ones that `auto` takes.
2. Two cores against one on the same blocks, by wall clock.
3. With `--other FOLDER`, another checkout: Simple Tracking (s = 1) there, in a process of its own.

The contenders take turns, several times, and each ratio is taken within a turn, so that a change of the machine's load hits both.

    python -m benchmarks.simulation_speed --out benchmarks/results/simulation_speed.json [--other FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.other_checkout import Checkout
from service.policy.base import Floats, Ints
from service.simulation.environments import instance
from service.simulation.kernels.catalogue import resolved_name
from service.simulation.kernels.compilation import compiled
from service.simulation.runner import Block, cell, play_block
from service.simulation.session import Session

ARMS = 40
LONG = 20_000
RUNS = 20
VECTORISED_RUNS, VECTORISED_DRAWS = 250, 400
TURNS = 7
AUTOMATIC = resolved_name("auto", instance("9"))


@compiled
def only_normals(count: int, rng: np.random.Generator) -> float:
    """The sum of so many normals: what any simulator must at least do."""
    total = 0.0
    for _ in range(count):
        total += rng.standard_normal()
    return total


def vectorised_tracking(means: Floats, budget: int, runs: int, rng: np.random.Generator) -> Ints:
    """Simple Tracking as one would write it in numpy: all runs side by side, all pairs of arms at every draw."""
    arms = len(means)
    row = np.arange(runs)
    draws = np.ones((runs, arms))
    sums = means + rng.standard_normal((runs, arms))
    for time_ in range(arms, budget):
        empirical = sums / draws
        gaps = empirical.max(axis=1, keepdims=True) - empirical
        with np.errstate(divide="ignore", invalid="ignore"):
            pairs = 1.0 / (gaps[:, :, None] + gaps[:, None, :]) ** 2
        pairs[:, np.arange(arms), np.arange(arms)] = 0.0
        with np.errstate(invalid="ignore"):
            costs = gaps**2 * pairs.sum(axis=2)
        costs[gaps == 0.0] = np.inf
        costs = np.where(np.isinf(costs), costs.min(axis=1, keepdims=True), costs)
        weights = 1.0 / costs
        weights /= weights.sum(axis=1, keepdims=True)
        arm = np.argmax(weights - draws / time_, axis=1)
        draws[row, arm] += 1.0
        sums[row, arm] += means[arm] + rng.standard_normal(runs)
    best: Ints = np.argmax(sums / draws, axis=1)
    return best


def cpu_seconds(work: Callable[[], object]) -> float:
    """The processor time that a call takes in this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


# What another checkout is asked to do: a line in, the draws per cpu-second out.
_ELSEWHERE = f"""
import sys, time
from service.simulation.environments import instance
from service.simulation.runner import Block, cell, play_block
block = Block(cell(instance("9"), "simple_tracking", {LONG}), 0, {RUNS}, 1)
for line in sys.stdin:
    start = time.process_time()
    play_block(block)
    print({RUNS * LONG} / (time.process_time() - start), flush=True)
"""


def one_turn(rng: np.random.Generator, elsewhere: Checkout | None = None) -> dict[str, float]:
    """Draws (or normals) per cpu-second of each contender."""
    means = instance("9").array()
    block, default = (Block(cell(instance("9"), policy, LONG), 0, RUNS, 1) for policy in ("simple_tracking", AUTOMATIC))
    draws = RUNS * LONG
    return {
        "elsewhere": 0.0 if elsewhere is None else elsewhere.ask("turn"),
        "normals": draws / cpu_seconds(lambda: only_normals(draws, rng)),
        "tracking": draws / cpu_seconds(lambda: play_block(block)),
        "default": draws / cpu_seconds(lambda: play_block(default)),
        "vectorised": VECTORISED_RUNS
        * (VECTORISED_DRAWS - ARMS)
        / cpu_seconds(lambda: vectorised_tracking(means, VECTORISED_DRAWS, VECTORISED_RUNS, rng)),
    }


def wall_seconds(jobs: int, seed: int) -> float:
    """How long so many cores take for the same blocks, workers started and warm."""
    cells = [cell(instance("9"), "simple_tracking", 4000)]
    with tempfile.TemporaryDirectory() as folder, Session(Path(folder), runs=3000, seed=seed, jobs=jobs, quiet=True) as session:
        session.play([cell(instance("9"), "simple_tracking", 100)], "warm-up")
        start = time.perf_counter()
        session.play(cells, "timed")
        return time.perf_counter() - start


def spread(values: list[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/simulation_speed.json"))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--other", type=Path, help="a folder with another version")
    arguments = parser.parse_args()
    rng = np.random.Generator(np.random.SFC64(1))
    elsewhere = None if arguments.other is None else Checkout(arguments.other, _ELSEWHERE)
    one_turn(rng, elsewhere)  # compiles
    turns = [one_turn(rng, elsewhere) for _ in range(arguments.turns)]
    if elsewhere is not None:
        elsewhere.end()
    cores = [wall_seconds(1, turn) / wall_seconds(2, turn) for turn in range(max(1, arguments.turns // 2))]
    found = {
        "tracking_million_draws_per_cpu_second": spread([turn["tracking"] / 1e6 for turn in turns]),
        "normals_million_per_cpu_second": spread([turn["normals"] / 1e6 for turn in turns]),
        "tracking_over_normals": spread([turn["tracking"] / turn["normals"] for turn in turns]),
        "tracking_over_vectorised_numpy": spread([turn["tracking"] / turn["vectorised"] for turn in turns]),
        "default_over_tracking": spread([turn["default"] / turn["tracking"] for turn in turns]),
        "two_cores_over_one": spread(cores),
        "turns": len(turns),
        "cpus": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
    }
    if elsewhere is not None:
        found["other"] = arguments.other.name
        found["tracking_over_other"] = spread([turn["tracking"] / turn["elsewhere"] for turn in turns])
        found["default_over_other"] = spread([turn["default"] / turn["elsewhere"] for turn in turns])
    print(json.dumps(found, indent=1))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
