"""Is `error_estimate` calibrated: how often was the leader wrong where the estimate said so?

    python -m benchmarks.inference_calibration

Means drawn from N(0, 0.2^2), Gaussian rewards of unit variance, looks at fixed numbers of draws. The estimates of all looks
are put in order and cut into ten equal groups; in each the mean estimate may exceed the observed share of wrong leaders but
not fall short of it by more than 0.05. Writes docs/inference/calibration.json after each case, and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.inference_instances import REAL, Floats, Instance
from benchmarks.inference_lockstep import PLAYERS, Player, Runs, play
from service.inference.error_estimate import error_estimate

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "calibration.json"
LOOKS = (100, 200, 400, 700, 1000, 1500, 2000, 3000, 4000, 5000)
DEVIATION_OF_MEANS = 0.2


def random_means(runs: int, arms: int, seed: int) -> tuple[Instance, Floats]:
    """An experiment whose means differ from run to run."""
    means = DEVIATION_OF_MEANS * np.random.default_rng(seed).standard_normal((runs, arms))
    rows = np.arange(runs)
    draw = lambda rng, drawn: means[rows, drawn] + rng.standard_normal(runs)  # noqa: E731 - the instance wants a function
    return Instance("random means", REAL, np.zeros(arms), draw), means


def estimates(state: Runs, truth: Floats) -> tuple[Floats, Floats]:
    """The estimate of every run, and whether its leader is wrong."""
    active = np.ones(truth.shape[1], np.bool_)
    leaders = state.leaders()
    variances = state.squares / np.maximum(state.counts - 1, 1)
    values = [
        error_estimate(REAL, state.counts[run], state.means[run], variances[run], leader=int(leader), active=active)
        for run, leader in enumerate(leaders)
    ]
    known = np.array([np.nan if value is None else value for value in values])
    return known, (leaders != truth.argmax(axis=1)).astype(np.float64)


def study(player: Player, arms: int, runs: int) -> dict[str, object]:
    """Deciles of the estimate against the observed error."""
    instance, truth = random_means(runs, arms, seed=arms)
    said, wrong, by_look = [], [], []
    for step, (state, _) in enumerate(play(instance, player, runs, LOOKS[-1], seed=41), start=1):
        if step in LOOKS:
            value, error = estimates(state, truth)
            said.append(value[~np.isnan(value)])
            wrong.append(error[~np.isnan(value)])
            if len(said[-1]):  # with many arms the first look may come too early for any estimate
                by_look.append([step, len(said[-1]), float(said[-1].mean()), float(wrong[-1].mean())])
    estimate, error = np.concatenate(said), np.concatenate(wrong)
    groups = np.array_split(np.argsort(estimate, kind="stable"), 10)
    deciles = [[len(group), float(estimate[group].mean()), float(error[group].mean())] for group in groups]
    return {
        "policy": player.name,
        "arms": arms,
        "runs": runs,
        "deciles": deciles,
        "looks": by_look,
        "largest_shortfall": max(observed - mean for _, mean, observed in deciles),
    }


def main() -> None:
    """Every policy, few and many arms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    arguments = parser.parse_args()
    found = {(row["arms"], row["policy"]): row for row in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    every = [(arms, player) for arms in (2, 10, 40) for player in PLAYERS]
    for arms, player in every:
        if (arms, player.name) not in found:
            found[arms, player.name] = study(player, arms, arguments.runs)
            print(found[arms, player.name], flush=True)
            rows = [found[key] for key in ((arms, player.name) for arms, player in every) if key in found]
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
