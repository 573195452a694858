"""What a recommendation's inference costs beside another checkout: the same four calls in both, in turns.

    python -m benchmarks.inference_speed_before FOLDER [--turns 9] [--kind bounded]

Each checkout answers in a process of its own: the same arms, and whatever its intervals, separation, error estimate and drift
are. Two cases are those of `inference_speed`, in which few rivals are close. In the others nothing is settled at a glance: all
arms have a mean of .1 and 20,000 rewards each; or 3,000 rewards each, one at .13 and the others between .05 and .1; or the same
with 1,000 to 5,000 rewards, so that few rivals have the same. A ratio is taken within a turn, this one over the other, from the
medians of many calls in processor time, so that a change of the machine's load hits both. Writes
docs/inference/speed_before.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from benchmarks.other_checkout import Checkout

HERE = Path(__file__).parent.parent
RESULTS = HERE / "docs" / "inference" / "speed_before.json"
KINDS = ("binary", "bounded", "real")
REPEATS = {10: 150, 1000: 25, 10_000: 5}
TURNS = 9

CASES = ("close race", "clear winner", "all equal", "one ahead", "unequal counts")

# A line in, "arms kind repeats case"; the milliseconds of the four calls out. Both forms of import are found.
_PROGRAM = """
import sys
sys.path[:0] = [".", "benchmarks"]
import numpy as np
import inference_speed as speed
import service.inference.separation as separation

rewards = {reward.kind: reward for reward in (speed.BINARY, speed.BOUNDED, speed.REAL)}


def undecided(reward, arms, case):
    rng = np.random.default_rng(arms)
    counts, means = np.full(arms, 20_000 if case == "all equal" else 3_000), np.full(arms, 0.1)
    if case == "unequal counts":
        counts = rng.integers(1_000, 5_001, arms)
    if case != "all equal":
        means = rng.uniform(0.05, 0.1, arms)
        means[arms // 2] = 0.13
    means = rng.binomial(counts, means) / counts
    variances = means * (1.0 - means) * (0.3 if reward.kind == "bounded" else 1.0)
    active, added, leader = np.ones(arms, np.bool_), np.zeros(arms, np.int64), int(means.argmax())
    earlier, recent = speed.Period(counts, means, variances), speed.Period(counts // 2, means, variances)
    levels = speed.arm_levels(added, 0.05)
    shown = getattr(separation, "rival_evidence", None) or separation.separated
    known = {"leader": leader, "active": active, "added": added, "alpha": 0.05}
    return {
        "intervals": lambda: speed.confidence_intervals(reward, counts, means, variances, speed.arm_levels(added, 0.05)),
        "separated": lambda: shown(reward, counts, means, variances, **known),
        "error_estimate": lambda: speed.error_estimate(reward, counts, means, variances, leader=leader, active=active),
        "drift": lambda: speed.drifting(reward, earlier, recent, levels),
    }


for line in sys.stdin:
    arms, kind, repeats, case = line.strip().split(maxsplit=3)
    if case in ("close race", "clear winner"):
        calls = speed.experiment(rewards[kind], int(arms), clear=case == "clear winner")
    else:
        calls = undecided(rewards[kind], int(arms), case)
    always = ("intervals", "separated", "error_estimate", "drift")
    print(sum(speed.milliseconds(calls[name], int(repeats))[0] for name in always), flush=True)
"""


def milliseconds(checkout: Checkout, arms: int, kind: str, case: str) -> float:
    """Processor time of the four calls there."""
    return checkout.ask(f"{arms} {kind} {REPEATS[arms]} {case}")


def compare(ours: Checkout, theirs: Checkout, row: tuple[int, str, str], turns: int) -> dict[str, object]:
    """One row: the ratios of the turns, after one that only warms up."""
    (arms, kind, case), ratios = row, []
    for turn in range(turns + 1):
        # Who goes first alternates.
        sides = (ours, theirs) if turn % 2 else (theirs, ours)
        taken = {side: milliseconds(side, arms, kind, case) for side in sides}
        ratios.append(taken[ours] / taken[theirs])
    ratios = ratios[1:]
    found = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
    return {
        "arms": arms,
        "kind": kind,
        "case": case,
        "turns": turns,
        **{name: round(value, 3) for name, value in found.items()},
    }


def main() -> None:
    """All kinds and sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="another checkout")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--kind", choices=KINDS, help="only these rewards; nothing is written")
    arguments = parser.parse_args()
    ours, theirs = Checkout(HERE, _PROGRAM), Checkout(arguments.folder, _PROGRAM)
    rows = []
    for arms in REPEATS:
        for kind in KINDS if arguments.kind is None else (arguments.kind,):
            for case in CASES:
                rows.append(compare(ours, theirs, (arms, kind, case), arguments.turns))
                print(rows[-1], flush=True)
    ours.end()
    theirs.end()
    if arguments.kind is None:
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
