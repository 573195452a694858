"""The choice among guarded weights once more: other rewards, more runs, the environments that take little time.

    python -m studies.guarded_repetition --runs 2000

All environments of `gap_structures` with at most 40 arms and no delay, at the budgets of the study, which it reads from its
results. Writes every count to docs/reproduction/guarded/repetition.csv, and the comparisons with s = 1 to repetition.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path

from service.simulation.session import Session
from studies.error_comparisons import compared, counts_of
from studies.gap_structures import all_environments
from studies.guarded import BASE, UNGUARDED, cells_of
from studies.guarded_choice import by_group

FOLDER = Path(__file__).parent.parent / "docs" / "reproduction" / "guarded"
POLICIES = ("simple_tracking:s=2:guard=0.5", "simple_tracking:s=2:guard=0.25", UNGUARDED)
SEED, MOST_ARMS = 20261, 40


def study_budgets() -> dict[str, tuple[int, ...]]:
    """Of every environment."""
    found: dict[str, set[int]] = {}
    with (FOLDER / "results.csv").open() as rows:
        for row in csv.DictReader(rows):
            found.setdefault(row["instance"], set()).add(int(row["budget"]))
    return {label: tuple(sorted(budgets)) for label, budgets in found.items()}


def main() -> None:
    """Play, count, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs, budgets, results = parser.parse_args().runs, study_budgets(), []
    with tempfile.TemporaryDirectory() as folder, Session(Path(folder), runs=runs, seed=SEED, quiet=True) as session:
        for environment in all_environments():
            if environment.arms <= MOST_ARMS and "delay=" not in environment.label:
                cells = cells_of(environment, (BASE, *POLICIES), budgets[environment.label])
                results += session.play(cells, environment.label)
    counts = counts_of(results)
    with (FOLDER / "repetition.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["instance", "draws", "policy", "errors", "runs", "seed"])
        for (label, draws), errors in counts.items():
            rows.writerows([label, draws, policy, *errors[policy], SEED] for policy in (BASE, *POLICIES))
    compared_to_base = {
        policy: {group: compared(pairs) for group, pairs in by_group(counts, policy, BASE).items()} for policy in POLICIES
    }
    (FOLDER / "repetition.json").write_text(json.dumps(compared_to_base, indent=1) + "\n")


if __name__ == "__main__":
    main()
