"""The same rewards through `ville`, an independent implementation of confidence sequences that is no part of this project.

    pip install --target /tmp/ville --no-deps ville==0.1.0
    PYTHONPATH=/tmp/ville python -m benchmarks.inference_ville

Widths after 1,000 rewards at the level of one of ten arms, and draws until two arms are told apart at 5%. Ville keeps every
reward in its order, bets by what it has seen so far, and intersects its intervals; this service knows three sums. Writes
docs/inference/ville.json.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from benchmarks.inference_instances import BINARY, BOUNDED, Floats
from benchmarks.inference_width import LEVEL, REWARDS
from service.domain import RewardSpec
from service.inference.intervals import confidence_intervals
from service.inference.levels import pair_levels
from service.inference.pairs import exceeds
from service.inference.samples import Samples

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "ville.json"
# The share of successes, or the two parameters of a Beta distribution.
Shape: TypeAlias = tuple[float] | tuple[float, float]
DISTRIBUTIONS: tuple[tuple[str, RewardSpec, Shape], ...] = (
    ("Bernoulli(0.05)", BINARY, (0.05,)),
    ("Bernoulli(0.5)", BINARY, (0.5,)),
    ("Beta(1, 1)", BOUNDED, (1, 1)),
    ("Beta(12, 12)", BOUNDED, (12, 12)),
    ("Beta(100, 100)", BOUNDED, (100, 100)),
    ("Beta(0.4, 7.6)", BOUNDED, (0.4, 7.6)),
    ("Beta(200, 300)", BOUNDED, (200, 300)),
)


class Pair(NamedTuple):
    """Two arms, the better one first."""

    name: str
    reward: RewardSpec
    shapes: tuple[Shape, Shape]
    most: int
    """Draws."""
    runs: int


PAIRS = (
    Pair("binary, .5 and .4", BINARY, ((0.5,), (0.4,)), 6_000, 40),
    Pair("binary, .1 and .08", BINARY, ((0.1,), (0.08,)), 60_000, 12),
    Pair("bounded, Beta .5 and .4, deviation .16", BOUNDED, ((4.0, 4.0), (3.2, 4.8)), 3_000, 40),
)


def rewards_of(shape: Shape, count: int, rng: np.random.Generator) -> Floats:
    """So many rewards of one arm."""
    if len(shape) == 1:
        return (rng.random(count) < shape[0]).astype(np.float64)
    return rng.beta(shape[0], shape[1], count)


def widths(ville: Any, name: str, reward: RewardSpec, shape: Shape, samples: int) -> dict[str, object]:  # noqa: ANN401
    """Mean widths of both, and of Ville's empirical Bernstein where there is one."""
    rng = np.random.default_rng(7)
    methods = {"ville": ville.BernoulliCS} if reward.kind == "binary" else {"ville": ville.BettingCS}
    if reward.kind == "bounded":
        methods["ville_bernstein"] = ville.EmpiricalBernsteinCS
    found: dict[str, list[float]] = {"service": [], **{each: [] for each in methods}}
    for _ in range(samples):
        rewards = rewards_of(shape, REWARDS, rng)
        lower, upper = confidence_intervals(
            reward, np.array([REWARDS]), rewards.mean(keepdims=True), rewards.var(ddof=1, keepdims=True), np.array([LEVEL])
        )
        found["service"].append(float(upper[0] - lower[0]))
        for each, method in methods.items():
            low, high = method(alpha=LEVEL).fit(rewards).interval()
            found[each].append(float(high - low))
    return {"distribution": name, "samples": samples, **{each: float(np.mean(all_)) for each, all_ in found.items()}}


def draws(ville: Any, pair: Pair) -> dict[str, object]:  # noqa: ANN401
    """Median draws until the first arm is shown to be the better one, the arms drawn by a fair coin."""
    rng = np.random.default_rng(7)
    level = float(pair_levels(np.zeros(2, np.int64), np.ones(2, np.bool_), 0, 0.05)[1])
    tests = {"ville": ville.BettingABTest, "ville_asymptotic": ville.AsymptoticABTest}
    found: dict[str, list[float]] = {"service": [], **{each: [] for each in tests}}
    for _ in range(pair.runs):
        arms = rng.integers(0, 2, pair.most).astype(np.float64)
        first, second = (rewards_of(shape, pair.most, rng) for shape in pair.shapes)
        rewards = np.where(arms == 1.0, first, second)
        found["service"].append(first_shown(partial(exceeds, pair.reward), rewards, arms, level))
        for each, test in tests.items():
            when = test(alpha=0.05).fit(rewards, arms).stopping_time()
            found[each].append(np.inf if when is None else float(when))
    medians = {each: float(np.median(all_)) for each, all_ in found.items()}
    known = {each: None if np.isinf(value) else value for each, value in medians.items()}
    return {"case": pair.name, "runs": pair.runs, **known}


def first_shown(test: Any, rewards: Floats, arms: Floats, level: float) -> float:  # noqa: ANN401 - exceeds, its kind given
    """The first draw after which it is shown."""
    moments = []
    for own in (arms == 1.0, arms == 0.0):
        counts, sums = np.cumsum(own).astype(np.float64), np.cumsum(rewards * own)
        means = sums / np.maximum(counts, 1.0)
        moments.append(Samples(counts, means, np.maximum(np.cumsum(rewards * rewards * own) - sums * means, 0.0)))
    shown = test(*moments, np.full(len(rewards), level))
    return float(np.argmax(shown) + 1) if shown.any() else np.inf


def main() -> None:
    """Widths and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=40)
    arguments = parser.parse_args()
    ville = importlib.import_module("ville")
    results: dict[str, Any] = {"version": importlib.metadata.version("ville"), "level": LEVEL, "widths": [], "draws": []}
    for distribution in DISTRIBUTIONS:
        results["widths"].append(widths(ville, *distribution, arguments.samples))
        print(results["widths"][-1], flush=True)
    for pair in PAIRS:
        results["draws"].append(draws(ville, pair))
        print(results["draws"][-1], flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
