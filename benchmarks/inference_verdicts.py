"""How many draws until the leader is separated: the test of the service against the one it had before, in the same runs.

    python -m benchmarks.inference_verdicts --runs 200

Before, the evidence of two binary arms was the product of their two Beta(1/2, 1/2) mixtures at the pooled share. Looks are half a
percent apart. A case ends when both tests have separated the leader in more than half of its runs, or after `--draws`. Writes
docs/inference/verdicts.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.inference_instances import BINARY, Floats, Instance, Ints, bernoulli
from benchmarks.inference_lockstep import PolicyName, Runs, play
from service.inference import binary
from service.inference.levels import pair_levels
from service.inference.pairs import exceeds
from service.inference.samples import Bools, Samples

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "verdicts.json"
_LOOKS = 1.005
Test: TypeAlias = Callable[[Samples, Samples, Floats], Bools]

CASES: tuple[tuple[str, list[float]], ...] = (
    (".5 and .4", [0.4, 0.5]),
    (".5 and .45", [0.45, 0.5]),
    (".1 and .08", [0.08, 0.1]),
    (".05 and .04", [0.04, 0.05]),
    (".02 and .015", [0.015, 0.02]),
    ("four arms .10 and one .13", [0.10, 0.10, 0.10, 0.10, 0.13]),
    ("ten arms .03 to .25", np.linspace(0.03, 0.25, 10).tolist()),
    ("nine arms .08 and one .1", [0.08] * 9 + [0.1]),
)


def tied(high: Samples, low: Samples, levels: Floats) -> Bools:
    """The test of the service."""
    return exceeds(BINARY, high, low, levels)


def product(high: Samples, low: Samples, levels: Floats) -> Bools:
    """The test before."""
    pooled = (binary.successes(high) + binary.successes(low)) / np.maximum(high.counts + low.counts, 1.0)
    found = binary.log_evidence(high, pooled) + binary.log_evidence(low, pooled)
    shown: Bools = (high.means > low.means) & (low.counts > 0) & (found >= -np.log(levels))
    return shown


def separated(state: Runs, runs: Ints, test: Test, levels: Floats) -> Ints:
    """Those of the runs whose leader beats all its rivals, the closest first."""
    leaders = state.leaders()[runs]
    rivals = np.where(state.counts[runs] > 0, state.means[runs], -np.inf)
    rivals[np.arange(len(runs)), leaders] = np.inf
    # By their means, best first, after the leader itself.
    order, kept = np.argsort(-rivals, axis=1, kind="stable"), np.arange(len(runs))
    for nth in range(1, rivals.shape[1]):
        if len(kept) == 0:
            break
        rival = order[kept, nth]
        high, low = state.samples(runs[kept], leaders[kept]), state.samples(runs[kept], rival)
        kept = kept[test(high, low, levels[rival])]
    return runs[kept]


def study(name: str, instance: Instance, policy: PolicyName, runs: int, draws: int) -> dict[str, object]:
    """One row of the table."""
    started, arms = time.perf_counter(), len(instance.means)
    levels = pair_levels(np.zeros(arms, np.int64), np.ones(arms, np.bool_), 0, 0.05)
    tests: dict[str, Test] = {"tied": tied, "product": product}
    when = {each: np.full(runs, np.inf) for each in tests}
    look = 20
    for step, (state, _) in enumerate(play(instance, policy, runs, draws, seed=41)):
        if step + 1 < look:
            continue
        look = max(look + 1, int(look * _LOOKS))
        for each, test in tests.items():
            waiting = np.flatnonzero(np.isinf(when[each]))
            when[each][separated(state, waiting, test, levels)] = step + 1
        if all(np.isfinite(np.median(found)) for found in when.values()):
            break
    medians = {each: float(np.median(found)) for each, found in when.items()}
    known = {each: None if np.isinf(median) else median for each, median in medians.items()}
    return {
        "case": name,
        "policy": policy,
        "runs": runs,
        **known,
        "ratio": None if np.isinf(medians["product"]) else medians["tied"] / medians["product"],
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    """All cases under Simple Tracking and uniform traffic."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--draws", type=int, default=300_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    policies: tuple[PolicyName, ...] = ("simple_tracking", "uniform")
    for policy in policies:
        for name, means in CASES:
            rows.append(study(name, bernoulli(name, np.array(means)), policy, arguments.runs, arguments.draws))
            print(rows[-1], flush=True)
            arguments.results.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
