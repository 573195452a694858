"""Binary rewards and ties of the best means: both rules, with the best arm in the last and in the first position.

    python -m studies.binary_ties

Writes the errors to docs/reproduction/ties/counts.csv, with runs and seed, after each case, and goes on where it stopped.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from service.simulation.environments import of_means
from service.simulation.runner import cell
from service.simulation.session import Session

COUNTS = Path(__file__).parent.parent / "docs" / "reproduction" / "ties" / "counts.csv"
SEED = 20262
POLICIES = ("simple_tracking:ties=paper", "simple_tracking", "simple_tracking:s=2:guard=0.5", "almost_tracking", "uniform")
# Name, means with the best arm last, budget, runs.
CASES = (
    ("9 x 0.010, 0.013", [0.010] * 9 + [0.013], 60_000, 2_000),
    ("4 x 0.10, 0.13", [0.10] * 4 + [0.13], 4_000, 10_000),
    ("4 x 0.05, 0.13", [0.05] * 4 + [0.13], 400, 10_000),
    ("4 x 0.50, 0.60", [0.50] * 4 + [0.60], 1_000, 10_000),
    ("0.03, 0.05, ..., 0.19, 0.25", [0.03, 0.05, 0.07, 0.09, 0.11, 0.13, 0.15, 0.17, 0.19, 0.25], 1_000, 10_000),
    ("19 x 0.10, 0.15", [0.10] * 19 + [0.15], 8_000, 10_000),
)
_HEAD = ["means", "best_arm", "budget", "policy", "errors", "runs", "seed"]


def main() -> None:
    """All cases that are not counted yet."""
    COUNTS.parent.mkdir(parents=True, exist_ok=True)
    if not COUNTS.exists():
        COUNTS.write_text(",".join(_HEAD) + "\n")
    with COUNTS.open() as file:
        done = {(row["means"], row["best_arm"]) for row in csv.DictReader(file)}
    for name, means, budget, runs in CASES:
        for place, ordered in (("last", means), ("first", means[::-1])):
            if (name, place) in done:
                continue
            environment = of_means(ordered, "bernoulli", f"{name}, best {place}")
            cells = [cell(environment, policy, budget) for policy in POLICIES]
            with tempfile.TemporaryDirectory() as folder, Session(Path(folder), runs=runs, seed=SEED, quiet=True) as session:
                results = session.play(cells, name)
            with COUNTS.open("a", newline="") as file:
                rows = csv.writer(file, lineterminator="\n")
                rows.writerows([name, place, budget, each.cell.policy, each.final, each.runs, SEED] for each in results)


if __name__ == "__main__":
    main()
