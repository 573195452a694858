"""Files of error counts: one row for each environment, number of draws and policy, with its runs and the seed."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from studies.error_comparisons import CountTable


def write_counts(path: Path, counts: CountTable, seed: int) -> None:
    """All of them, the policies by name."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["instance", "draws", "policy", "errors", "runs", "seed"])
        for (label, draws), errors in counts.items():
            rows.writerows([label, draws, policy, *errors[policy], seed] for policy in sorted(errors))


def read_counts(path: Path) -> CountTable:
    """(errors, runs) of every policy, by environment and draws."""
    found: CountTable = {}
    with path.open() as rows:
        for row in csv.DictReader(rows):
            errors = found.setdefault((row["instance"], int(row["draws"])), {})
            errors[row["policy"]] = (int(row["errors"]), int(row["runs"]))
    return found
