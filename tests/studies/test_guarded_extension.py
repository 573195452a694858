"""The further environments of the study of guarded weights: new ones, with counts that bear out what is said of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from studies.error_comparisons import CountTable
from studies.gap_structures import all_environments
from studies.guarded_extension import SEED, comparisons, extension, judged_counts

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction" / "guarded"


def kept_counts() -> CountTable:
    """(errors, runs) of every policy, by environment and draws."""
    found: CountTable = {}
    with (FOLDER / "extension.csv").open() as rows:
        for row in csv.DictReader(rows):
            assert int(row["seed"]) == SEED
            found.setdefault((row["instance"], int(row["draws"])), {})[row["policy"]] = (int(row["errors"]), int(row["runs"]))
    return found


def test_no_environment_was_in_the_study() -> None:
    """Each is new, has a label of its own, and has its counts."""
    labels = [one.label for one in extension()]
    assert len(set(labels)) == len(labels)
    assert not set(labels) & {one.label for one in all_environments()}
    assert {label for label, _ in kept_counts()} == set(labels)


def test_the_comparisons_follow_from_the_counts() -> None:
    """Those of these environments, and those of these and the judgement's together."""
    said = json.loads((FOLDER / "extension.json").read_text())
    counts = kept_counts()
    assert json.loads(json.dumps(comparisons(counts))) == said["extension"]
    assert json.loads(json.dumps(comparisons({**judged_counts(), **counts}))) == said["together"]
