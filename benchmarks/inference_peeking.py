"""One arm, all of alpha, a look after every reward: our intervals, the drift check, and a naive t-interval.

    python -m benchmarks.inference_peeking

The sharpest form of the coverage study (nothing is divided among arms), and what happens without it. Writes
docs/inference/peeking.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from benchmarks.inference_instances import BOUNDED, REAL, Floats, Instance, Ints, bernoulli, beta
from benchmarks.inference_lockstep import Runs
from service.inference.drift import Period, drifting
from service.inference.intervals import confidence_intervals

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "peeking.json"
MARKS = (10, 30, 100, 300, 1000, 3000)


def one_arm() -> list[Instance]:
    """Distributions of one arm. The last two are not what the t-mixture is exact for."""
    one = np.ones(1)

    def real(name: str, mean: float, draw: Callable[[np.random.Generator, int], Floats]) -> Instance:
        return Instance(name, REAL, mean * one, lambda rng, arms: draw(rng, len(arms)))

    return [
        *(bernoulli(f"binary, {mean:g}", mean * one) for mean in (0.01, 0.1, 0.5)),
        beta("bounded, Beta(.1, 1.9)", 0.1 * one, 1.9 * one),
        beta("bounded, Beta(.1, .1)", 0.1 * one, 0.1 * one),
        beta("bounded, Beta(3, 2)", 3.0 * one, 2.0 * one),
        Instance("bounded, fair coin", BOUNDED, 0.5 * one, lambda rng, arms: np.rint(rng.random(len(arms)))),
        real("real, Gaussian", 0.0, lambda rng, size: rng.standard_normal(size)),
        real("real, uniform (not Gaussian)", 0.5, lambda rng, size: rng.random(size)),
        real("real, exponential (not Gaussian)", 1.0, lambda rng, size: rng.exponential(size=size)),
    ]


def study(instance: Instance, runs: int, rewards: int, alpha: float) -> dict[str, object]:
    """The share of runs in which each method ever erred."""
    rng = np.random.default_rng(77)
    state, earlier = Runs(instance, runs), Runs(instance, runs)
    rows, arms, levels = np.arange(runs), np.zeros(runs, np.int64), np.full(runs, alpha)
    missed, naive, alarmed = (np.zeros(runs, np.bool_) for _ in range(3))
    course: list[list[float]] = []
    truth = float(instance.means[0])
    for count in range(1, rewards + 1):
        state.add(arms, instance.draw(rng, arms))
        counts, means, variances = moments(state, rows, arms)
        lower, upper = confidence_intervals(instance.reward, counts, means, variances, levels)
        missed |= (truth < lower) | (truth > upper)
        if count > 1:
            reach = -stdtrit(count - 1, alpha / 2) * np.sqrt(variances / count)
            naive |= np.abs(means - truth) > reach
        if count & (count - 1) == 0:
            earlier.counts, earlier.means, earlier.squares = state.counts.copy(), state.means.copy(), state.squares.copy()
        else:
            then = Period(*moments(earlier, rows, arms))
            alarmed |= drifting(instance.reward, then, Period(*since(then, counts, means, variances)), levels)
        if count in {*MARKS, rewards}:
            course.append([count, float(missed.mean()), float(naive.mean()), float(alarmed.mean())])
    return {
        "instance": instance.name,
        "kind": instance.reward.kind,
        "runs": runs,
        "rewards": rewards,
        "alpha": alpha,
        "ever_missed": float(missed.mean()),
        "naive_t_ever_missed": float(naive.mean()),
        "false_drift_alarm": float(alarmed.mean()),
        "course": course,
    }


def moments(state: Runs, rows: Ints, arms: Ints) -> tuple[Ints, Floats, Floats]:
    """Counts, means and variances of the one arm in all runs."""
    sample = state.samples(rows, arms)
    return state.counts[:, 0], sample.means, sample.squares / np.maximum(sample.counts - 1.0, 1.0)


def since(then: Period, counts: Ints, means: Floats, variances: Floats) -> tuple[Ints, Floats, Floats]:
    """The moments of the rewards after `then`, by taking its sums away from the present ones."""
    recent = counts - then.counts
    total = counts * means - then.counts * then.means
    mean = total / recent
    squares = (counts - 1) * variances - (then.counts - 1) * then.variances
    squares += counts * means**2 - then.counts * then.means**2 - recent * mean**2
    return recent, mean, np.maximum(squares, 0.0) / np.maximum(recent - 1, 1)


def main() -> None:
    """All distributions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--rewards", type=int, default=5000)
    parser.add_argument("--kind", choices=["binary", "bounded", "real"], help="play only these again, and keep the others")
    arguments = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if arguments.kind else []
    found = {row["instance"]: row for row in kept}
    for instance in one_arm():
        if arguments.kind in {None, instance.reward.kind}:
            found[instance.name] = study(instance, arguments.runs, arguments.rewards, 0.05)
            print(found[instance.name], flush=True)
            RESULTS.write_text(json.dumps(list(found.values()), indent=1) + "\n")


if __name__ == "__main__":
    main()
