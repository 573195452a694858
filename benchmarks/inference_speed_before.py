"""What a recommendation's inference costs beside another checkout: the same four calls in both, in turns.

    python -m benchmarks.inference_speed_before FOLDER [--turns 9] [--kind bounded]

Each checkout answers in a process of its own, with its own `benchmarks/inference_speed.py`: the same arms, and whatever its
intervals, separation, error estimate and drift are. A ratio is taken within a turn, this one over the other, from the medians of
many calls in processor time, so that a change of the machine's load hits both. Writes docs/inference/speed_before.json.
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

# A line in, "arms kind clear repeats"; the milliseconds of the four calls out. Both forms of import are found.
_PROGRAM = """
import sys
sys.path[:0] = [".", "benchmarks"]
import inference_speed as speed
rewards = {reward.kind: reward for reward in (speed.BINARY, speed.BOUNDED, speed.REAL)}
for line in sys.stdin:
    arms, kind, clear, repeats = line.split()
    calls = speed.experiment(rewards[kind], int(arms), clear=clear == "True")
    always = ("intervals", "separated", "error_estimate", "drift")
    print(sum(speed.milliseconds(calls[name], int(repeats))[0] for name in always), flush=True)
"""


def milliseconds(checkout: Checkout, arms: int, kind: str, *, clear: bool) -> float:
    """Processor time of the four calls there."""
    return checkout.ask(f"{arms} {kind} {clear} {REPEATS[arms]}")


def compare(ours: Checkout, theirs: Checkout, arms: int, kind: str, turns: int, *, clear: bool) -> dict[str, object]:
    """One row: the ratios of the turns, after one that only warms up."""
    ratios = []
    for turn in range(turns + 1):
        # Who goes first alternates.
        sides = (ours, theirs) if turn % 2 else (theirs, ours)
        taken = {side: milliseconds(side, arms, kind, clear=clear) for side in sides}
        ratios.append(taken[ours] / taken[theirs])
    ratios = ratios[1:]
    found = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
    return {
        "arms": arms,
        "kind": kind,
        "clear_winner": clear,
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
            for clear in (False, True):
                rows.append(compare(ours, theirs, arms, kind, arguments.turns, clear=clear))
                print(rows[-1], flush=True)
    ours.end()
    theirs.end()
    if arguments.kind is None:
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
