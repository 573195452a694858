"""The judgement of guarded weights on environments that the study left out: more bounded rewards, rarer successes, more delays.

    python -m studies.guarded_extension --runs 250 [--parts FOLDER]

The weights that were chosen, s = 1 and the baselines, as in the study's judgement; chosen before any of these environments
was seen. Finished blocks are kept in the folder, if one is given, so that an interrupted command goes on. All counts go to
docs/reproduction/guarded/extension.csv, and to extension.json the comparisons: of these environments, and of these and the
judgement's together.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.simulation.session import Session
from studies.count_files import write_counts
from studies.error_comparisons import CountTable, compared, counts_of
from studies.gap_structures import DELAY, STRUCTURES, environment
from studies.guarded import ANYTIME, BASE, KNOWING, RIGHT_VARIANCE, cells_of, runs_for
from studies.guarded_choice import JUDGED, by_group
from studies.sharpness import find_budgets

if TYPE_CHECKING:
    from service.simulation.environments import Environment

FOLDER = Path(__file__).parent.parent / "docs" / "reproduction" / "guarded"
CHOSEN = "simple_tracking:s=2:guard=0.5"
SEED = 20262
RAREST = 0.01


def extension() -> list[Environment]:
    """Every environment, the costly ones last."""
    found = [environment("bounded", arms, "equal") for arms in (2, 3)]
    found += [environment("bounded", 5, structure) for structure in STRUCTURES]
    found += [environment("bounded", arms, structure) for arms in (10, 40) for structure in ("equal", "geometric", "many-equal")]
    found += [environment("bernoulli", 2, "equal", 0.1)]
    found += [environment("bernoulli", arms, structure, 0.1) for arms in (5, 10, 40) for structure in ("geometric", "many-equal")]
    found += [environment(kind, arms, "equal", delay=DELAY) for kind in ("gaussian", "bernoulli", "bounded") for arms in (2, 3)]
    found += [environment("bounded", arms, structure, delay=DELAY) for arms in (5, 10, 40) for structure in ("linear", "random")]
    found += [
        environment(kind, 10, structure, delay=DELAY) for kind in ("gaussian", "bernoulli") for structure in ("equal", "one-good")
    ]
    found += [environment("bernoulli", arms, "random", 0.1, delay=DELAY) for arms in (5, 10)]
    found += [environment("bernoulli", arms, "equal", 0.02) for arms in (2, 3)]
    found += [environment("bernoulli", arms, "linear", 0.02) for arms in (5, 10)]
    found += [environment("bernoulli", arms, "equal", RAREST) for arms in (2, 3, 5, 10)]
    found += [environment("bernoulli", arms, "random", RAREST) for arms in (5, 10)]
    found += [environment("gaussian", 200, structure) for structure in ("geometric", "one-good", "many-equal")]
    found += [environment("bernoulli", 200, structure) for structure in ("equal", "geometric", "one-good", "many-equal")]
    found += [environment("bounded", 200, structure) for structure in ("equal", "random")]
    found += [environment(kind, 1000, "equal") for kind in ("gaussian", "bernoulli")]
    return [*found, environment("bounded", 1000, "random")]


def runs_of(each: Environment, runs: int) -> int:
    """As in the study; with the rarest successes an experiment is longest."""
    return max(1, runs // 2) if f"rate={RAREST:g}" in each.label else runs_for(each, runs)


def policies_for(each: Environment) -> tuple[str, ...]:
    """The chosen one, what it came from, and the baselines."""
    return (CHOSEN, BASE, *ANYTIME, *KNOWING, *(RIGHT_VARIANCE if each.kind == "bernoulli" else ()))


def comparisons(counts: CountTable) -> dict[str, Any]:
    """The chosen one with each of the others, by group."""
    others = sorted({policy for errors in counts.values() for policy in errors} - {CHOSEN})
    return {other: {group: compared(pairs) for group, pairs in by_group(counts, CHOSEN, other).items()} for other in others}


def judged_counts() -> CountTable:
    """(errors, runs) of the study's judgement, by environment and draws."""
    found: CountTable = {}
    with (FOLDER / "results.csv").open() as rows:
        for row in csv.DictReader(rows):
            if row["instance"].endswith(JUDGED) and row["measure"] == "error":
                errors = found.setdefault((row["instance"], int(row["draws"])), {})
                errors[row["policy"]] = (int(row["errors"]), int(row["runs"]))
    return found


def main() -> None:
    """Play, count, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=250)
    parser.add_argument("--parts", type=Path)
    arguments = parser.parse_args()
    results = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Session(arguments.parts or Path(folder), runs=arguments.runs, seed=SEED, quiet=True) as session,
    ):
        for each in extension():
            runs = runs_of(each, arguments.runs)
            budgets = find_budgets(session, each, runs)
            results += session.play(cells_of(each, policies_for(each), budgets), each.label, runs)
    counts = counts_of(results)
    write_counts(FOLDER / "extension.csv", counts, SEED)
    compared_here = {"extension": comparisons(counts), "together": comparisons({**judged_counts(), **counts})}
    (FOLDER / "extension.json").write_text(json.dumps(compared_here, indent=1) + "\n")


if __name__ == "__main__":
    main()
