"""Binary rewards and ties of the best means: both rules, with the best arm in the last and in the first position.

    python -m studies.binary_ties [--parts FOLDER]

Writes the errors to docs/reproduction/ties/counts.csv, with runs and seed, after each case, and goes on where it stopped: a
case that has fewer runs there is played again. Finished blocks of a case are kept in the folder, if one is given, so that
an interrupted case goes on, too. A block's rewards follow from the seed and its number, so a case with more runs has those
of the same case with fewer among them.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

from service.simulation.environments import of_means
from service.simulation.runner import cell
from service.simulation.session import Session

COUNTS = Path(__file__).parent.parent / "docs" / "reproduction" / "ties" / "counts.csv"
SEED, RUNS = 20262, 10_000
POLICIES = ("simple_tracking:ties=paper", "simple_tracking", "simple_tracking:s=2:guard=0.5", "almost_tracking", "uniform")
# Name, means with the best arm last, budget.
CASES = (
    ("4 x 0.10, 0.13", [0.10] * 4 + [0.13], 4_000),
    ("4 x 0.05, 0.13", [0.05] * 4 + [0.13], 400),
    ("4 x 0.50, 0.60", [0.50] * 4 + [0.60], 1_000),
    ("0.03, 0.05, ..., 0.19, 0.25", [0.03, 0.05, 0.07, 0.09, 0.11, 0.13, 0.15, 0.17, 0.19, 0.25], 1_000),
    ("19 x 0.10, 0.15", [0.10] * 19 + [0.15], 8_000),
    ("9 x 0.010, 0.013", [0.010] * 9 + [0.013], 60_000),
)
PLACES = ("last", "first")
_HEAD = ["means", "best_arm", "budget", "policy", "errors", "runs", "seed"]
Row = dict[str, str]
Counts = dict[tuple[str, str], list[Row]]


def counts() -> Counts:
    """What was counted: of every case and place of the best arm a row for each policy."""
    found: Counts = {}
    if COUNTS.exists():
        with COUNTS.open() as file:
            for row in csv.DictReader(file):
                found.setdefault((row["means"], row["best_arm"]), []).append(row)
    return found


def write(found: Counts) -> None:
    """All counts, in the order of the cases."""
    COUNTS.parent.mkdir(parents=True, exist_ok=True)
    with COUNTS.open("w", newline="") as file:
        rows = csv.DictWriter(file, _HEAD, lineterminator="\n")
        rows.writeheader()
        for name, _, _ in CASES:
            for place in PLACES:
                rows.writerows(found.get((name, place), []))


def played(session: Session, name: str, place: str, means: list[float], budget: int) -> list[Row]:
    """A case's rows with the best arm in this place."""
    environment = of_means(means, "bernoulli", f"{name}, best {place}")
    results = session.play([cell(environment, policy, budget) for policy in POLICIES], name)
    values = [(name, place, budget, each.cell.policy, each.final, each.runs, SEED) for each in results]
    return [dict(zip(_HEAD, map(str, row), strict=True)) for row in values]


def main() -> None:
    """All cases that are not counted yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path)
    parts, found = parser.parse_args().parts, counts()
    with tempfile.TemporaryDirectory() as folder, Session(parts or Path(folder), runs=RUNS, seed=SEED, quiet=True) as session:
        for name, means, budget in CASES:
            for place, ordered in zip(PLACES, (means, means[::-1]), strict=True):
                if not all(int(row["runs"]) == RUNS for row in found.get((name, place), [{"runs": "0"}])):
                    found[name, place] = played(session, name, place, ordered, budget)
                    write(found)


if __name__ == "__main__":
    main()
