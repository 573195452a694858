"""Are the compiled tracking policies the production ones? Runs of 2,000 draws through both, on the same random stream.

K = 2, 31, 40, 80; Gaussian and binary rewards (whose means tie all the time); both policies, both readings of Almost Tracking,
sharper and guarded weights, both rules for ties; rewards at once, late and lost. Writes how many runs differ, and where the first
difference was.

    python -m benchmarks.simulation_equality --runs 1000 --out benchmarks/results/simulation_equality.json
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import joblib
import numpy as np

from service.simulation.environments import Environment, of_means
from studies.production_equality import first_difference

DRAWS = 2000
ARMS = (2, 31, 40, 80)
POLICIES = (
    "simple_tracking:s=2:guard=0.5",
    "simple_tracking",
    "simple_tracking:ties=paper",
    "simple_tracking:s=1.5",
    "simple_tracking:s=1.5:guard=0.25:ties=paper",
    "almost_tracking",
    "almost_tracking:ties=paper",
    "almost_tracking:realised",
    "almost_tracking:s=1.5",
    "almost_tracking:s=2:guard=0.5",
)
TRAFFIC = ((0, 0.0), (0, 0.0), (0, 0.0), (100, 0.1))
SEED = 20260


def environment(number: int, arms: int, *, binary: bool) -> Environment:
    """Other means in every run."""
    rng = np.random.default_rng([SEED, number])
    means = [*rng.uniform(0.05, 0.5, arms - 1), 0.55] if binary else [*rng.normal(size=arms - 1), 2.0]
    return of_means([float(mean) for mean in rng.permutation(means)], "bernoulli" if binary else "gaussian", f"run {number}")


def one(number: int) -> dict[str, object]:
    """Run number `number`: its settings go round through all combinations, shuffled, so that few runs have some of everything."""
    settings = list(itertools.product(ARMS, (False, True), TRAFFIC, POLICIES))
    shuffled = np.random.default_rng(SEED).permutation(len(settings))
    arms, binary, (delay, loss), policy = settings[shuffled[number % len(settings)]]
    world = environment(number, arms, binary=binary).with_traffic(delay, loss)
    first = first_difference(world, policy, DRAWS, number)
    return {"run": number, "arms": arms, "binary": binary, "delay": delay, "policy": policy, "first_difference": first}


def main() -> None:
    """Compare and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/simulation_equality.json"))
    arguments = parser.parse_args()
    found = joblib.Parallel(n_jobs=arguments.jobs)(joblib.delayed(one)(number) for number in range(arguments.runs))
    differing = [row for row in found if row["first_difference"] is not None]
    by_policy = {policy: sum(row["policy"] == policy for row in found) for policy in POLICIES}
    outcome = {
        "runs": arguments.runs,
        "draws": DRAWS,
        "seed": SEED,
        "arms": ARMS,
        "runs_by_policy": by_policy,
        "runs_that_differ": len(differing),
        "differences": differing[:20],
    }
    print(json.dumps(outcome, indent=1))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
