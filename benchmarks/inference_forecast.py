"""How often a forecast of the verdict comes true: made at one look, held against what really happens then.

    python -m benchmarks.inference_forecast --runs 200 [--seed 17 --results FILE]

In every run the arms' means are drawn anew. The default policy plays a while, a forecast is made, and it plays on, draw by draw,
until the verdict or the end. A forecast comes true when the verdict comes within its middle 80%. Where no verdict comes before
the end, it is true if the forecast ends beyond it. Writes docs/inference/forecast.json after each case, and goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.inference_coverage import separated_runs
from benchmarks.inference_instances import BINARY, BOUNDED, REAL, Floats, Instance, Ints
from benchmarks.inference_lockstep import AUTOMATIC, DEFAULT, Runs, play
from service.domain import RewardSpec
from service.inference.levels import pair_levels
from service.inference.samples import Samples
from service.simulation.futures import Forecast, Situation, forecast, leader_levels

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "forecast.json"
ALPHA = 0.05
# Looks while it plays on are this much apart.
_LOOKS = 1.01


@dataclass(frozen=True, slots=True)
class Case:
    """How the means are drawn, and when the forecast is made."""

    name: str
    reward: RewardSpec
    arms: int
    at: int
    end: int
    rates: tuple[float, float] = (0.05, 0.5)
    """Between these, for binary rewards."""
    worthwhile: float = 0.0
    """Where it is not 0, the verdict is `decided`."""


CASES = (
    Case("binary, rates uniform in .05 to .5, K = 2", BINARY, 2, 300, 60_000),
    Case("binary, rates uniform in .05 to .5, K = 5", BINARY, 5, 500, 60_000),
    Case("binary, rates uniform in .05 to .5, K = 5, late", BINARY, 5, 3_000, 60_000),
    Case("binary, rates uniform in .05 to .5, K = 10", BINARY, 10, 1_000, 60_000),
    Case("binary, rates uniform in .2 to .3, K = 5, worthwhile .05", BINARY, 5, 1_000, 60_000, (0.2, 0.3), 0.05),
    Case("bounded, Beta means uniform in .3 to .7, K = 5", BOUNDED, 5, 500, 60_000),
    Case("Gaussian, means N(0, 1/4), K = 5", REAL, 5, 500, 60_000),
)


def truths(case: Case, runs: int, rng: np.random.Generator) -> Floats:
    """The means of every run."""
    shape = (runs, case.arms)
    if case.reward.kind == "binary":
        return rng.uniform(*case.rates, shape)
    return rng.uniform(0.3, 0.7, shape) if case.reward.kind == "bounded" else 0.5 * rng.standard_normal(shape)


def instance_of(case: Case, means: Floats) -> Instance:
    """Every run with its own means."""
    rows = np.arange(len(means))

    def draw(rng: np.random.Generator, arms: Ints) -> Floats:
        own = means[rows, arms]
        if case.reward.kind == "binary":
            return (rng.random(len(own)) < own).astype(np.float64)
        return rng.beta(8.0 * own, 8.0 * (1.0 - own)) if case.reward.kind == "bounded" else own + rng.standard_normal(len(own))

    return Instance(case.name, case.reward, means[0], draw, case.worthwhile)


def forecasts(case: Case, state: Runs, seed: int) -> list[Forecast]:
    """One for each run, from its statistics."""
    levels = leader_levels(np.zeros(case.arms, np.int64), np.ones(case.arms, np.bool_), ALPHA)
    found = []
    for run in range(state.count):
        samples = Samples(state.counts[run].astype(np.float64), state.means[run].copy(), state.squares[run].copy())
        situation = Situation(case.reward, AUTOMATIC, samples, state.counts[run], np.zeros(case.arms), levels, case.worthwhile)
        found.append(forecast(situation, np.random.default_rng([seed, run])))
    return found


def study(case: Case, runs: int, seed: int = 16) -> dict[str, object]:
    """One row of the table."""
    started = time.perf_counter()
    instance = instance_of(case, truths(case, runs, np.random.default_rng(seed)))
    levels = pair_levels(np.zeros(case.arms, np.int64), np.ones(case.arms, np.bool_), 0, ALPHA)
    waits, made, look = np.full(runs, np.inf), list[Forecast](), case.at
    processor = 0.0
    for step, (state, _) in enumerate(play(instance, DEFAULT, runs, case.end, seed=seed)):
        if step + 1 < look:
            continue
        look = max(look + 1, int(look * _LOOKS))
        waiting = np.flatnonzero(np.isinf(waits))
        waits[separated_runs(state, waiting, state.leaders()[waiting], levels)] = step + 1 - case.at
        if not made:
            before = time.process_time()
            made = forecasts(case, state, seed)
            processor = time.process_time() - before
        if np.isfinite(waits).all():
            break
    open_ones = waits > 0  # where the verdict was there already nothing was forecast
    low, high = (
        np.array([np.inf if getattr(one, name) is None else getattr(one, name) for one in made]) for name in ("low", "high")
    )
    ended = np.minimum(waits, case.end - case.at)
    true = np.where(np.isfinite(waits), (low <= waits) & (waits <= high), high >= ended)
    middle = np.array([np.inf if one.median is None else one.median for one in made])
    return {
        "case": case.name,
        "arms": case.arms,
        "at": case.at,
        "runs": int(open_ones.sum()),
        "came_true": float(true[open_ones].mean()),
        "sooner": float((waits < low)[open_ones].mean()),
        "later": float((ended > high)[open_ones].mean()),
        "median_wait": float(np.median(waits[open_ones])),
        "median_forecast": float(np.median(middle[open_ones])),
        "milliseconds_each": round(1e3 * processor / runs, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    """All cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    found = {row["case"]: row for row in json.loads(arguments.results.read_text())} if arguments.results.exists() else {}
    for case in CASES:
        if case.name not in found:
            found[case.name] = study(case, arguments.runs, arguments.seed)
            print(found[case.name], flush=True)
            rows = [found[each.name] for each in CASES if each.name in found]
            arguments.results.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
