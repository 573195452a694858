"""What the inference of one recommendation costs: intervals, separation, error estimate and drift for K arms.

    python -m benchmarks.inference_speed

Two cases for each reward kind and K: a close race, and a clear winner; and what a worthwhile difference and a control add.
Milliseconds of processor time on one core (other work on the machine does not count), the median and the fastest of many
calls. Writes docs/inference/speed.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.inference_instances import BINARY, BOUNDED, REAL, Floats, Ints
from service.domain import RewardSpec
from service.inference.drift import Period, drifting
from service.inference.error_estimate import error_estimate
from service.inference.intervals import confidence_intervals
from service.inference.levels import arm_levels
from service.inference.lift import lifts
from service.inference.separation import all_shown, rival_evidence

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "speed.json"
REWARDS = 20_000
WORTHWHILE = 0.05
# What every recommendation has.
ALWAYS = ("intervals", "separated", "error_estimate", "drift")


def experiment(reward: RewardSpec, arms: int, *, clear: bool) -> dict[str, Callable[[], object]]:
    """The four calls on one experiment, and the two that a worthwhile difference and a control ask for."""
    rng = np.random.default_rng(arms)
    counts: Ints = np.full(arms, REWARDS)
    means: Floats = rng.uniform(0.1, 0.5, arms)
    if clear:
        means[arms // 2] = 0.9
    means = np.rint(counts * means) / counts
    variances, leader = means * (1.0 - means), int(means.argmax())
    active, added = np.ones(arms, np.bool_), np.zeros(arms, np.int64)
    levels = arm_levels(added, 0.05)
    earlier, recent = Period(counts, means, variances), Period(counts // 2, means, variances)
    return {
        "intervals": lambda: confidence_intervals(reward, counts, means, variances, arm_levels(added, 0.05)),
        "separated": lambda: all_shown(
            rival_evidence(reward, counts, means, variances, leader=leader, active=active, added=added, alpha=0.05)
        ),
        "error_estimate": lambda: error_estimate(reward, counts, means, variances, leader=leader, active=active),
        "drift": lambda: drifting(reward, earlier, recent, levels),
        "worthwhile": lambda: all_shown(
            rival_evidence(
                reward, counts, means, variances, leader=leader, active=active, added=added, alpha=0.05, margin=WORTHWHILE
            )
        ),
        "lifts": lambda: lifts(reward, counts, means, variances, control=0, added=added, alpha=0.05),
    }


def milliseconds(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """(median, fastest)."""
    taken = []
    for _ in range(repeats):
        started = time.thread_time()
        call()
        taken.append(1e3 * (time.thread_time() - started))
    return float(np.median(taken)), min(taken)


def main() -> None:
    """All kinds and sizes."""
    rows = []
    for arms, repeats in ((10, 400), (1000, 60), (10_000, 15)):
        for reward in (BINARY, BOUNDED, REAL):
            for clear in (False, True):
                row: dict[str, object] = {"arms": arms, "kind": reward.kind, "clear_winner": clear}
                totals = np.zeros(2)
                for name, call in experiment(reward, arms, clear=clear).items():
                    times = milliseconds(call, repeats)
                    row[name] = round(times[0], 3)
                    totals += times if name in ALWAYS else 0.0
                rows.append(row | {"total": round(float(totals[0]), 3), "total_fastest": round(float(totals[1]), 3)})
                print(rows[-1])
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
