"""Does the default err less than TS-TC with Gaussian rewards? One fresh confirmation, planned before its figures.

    python -m studies.guarded_confirmation [--parts FOLDER]

**What is asked.** The judgement and its extension have 0.88 of the errors of TS-TC with Gaussian rewards, 95% interval over
environments 0.75 to 1.03: not shown to be below 1. Whoever looks again until it is would show it by chance; so this is played
once, whole, and stands on the page whatever comes out.

**The plan, written before any figure.**

1. *Environments*: every description (number of arms, structure of gaps, delay) of the 40 Gaussian environments of the study and
   its extension, `TIMES` times, made by the same rule (`gap_structures.environment`) with random gaps and positions of its own.
   New are the rewards, the positions, and the gaps where they are random; other structures are not asked about.
2. *Budgets*: the four of the study, where Simple Tracking with s = 1 errs in 20, 5, 1 and about 0.1% of the runs, found with
   `SEARCH_RUNS` runs. *Runs*: `RUNS` where the study had 250, with fewer for 40 arms and more as there (`guarded.runs_for`),
   so that 2.5 errors are expected at the last budget with up to 10 arms, and 25 and more at the others.
3. *Measure*: the geometric mean of the ratios of errors, half an error added to both, over all environments and budgets, with
   the interval of `guarded_intervals` (environments drawn again, each with its budgets). **Shown if the interval's upper end is
   below 1.** By budget and by number of arms it is given for information, and shows nothing by itself.
4. *Number*: of the 40 environments the mean log ratio of an environment has a standard deviation of 0.497, with the noise of
   few errors in it. For a power of 0.8 at a ratio of 0.88, (1.96 + 0.84)^2 * 0.497^2 / log(0.88)^2 = 119 environments are
   needed: 120, each description three times. More runs make the deviation less, not more.

Finished blocks are kept in the folder, if one is given, so that an interrupted command goes on. The counts go to
docs/reproduction/guarded/confirmation.csv, the measure to confirmation.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from service.simulation.session import Session
from studies.count_files import write_counts
from studies.error_comparisons import CountTable, counts_of
from studies.gap_structures import STRUCTURES, all_environments, environment
from studies.guarded import cells_of, runs_for
from studies.guarded_extension import CHOSEN, FOLDER, extension
from studies.guarded_intervals import interval, sums_by_environment
from studies.sharpness import find_budgets

if TYPE_CHECKING:
    from service.simulation.environments import Environment

SEED, RUNS, SEARCH_RUNS = 20264, 2500, 500
TIMES = 3
AGAINST = "ts_tc"
ARMS = ("2 to 5 arms", "10 and 40 arms", "200 and 1,000 arms")


def gaussian_environments() -> list[Environment]:
    """Those of the study and its extension."""
    return [each for each in (*all_environments(), *extension()) if each.kind == "gaussian"]


def confirmation() -> list[Environment]:
    """The fresh environments, those with few arms first."""
    found = [_drawn_anew(known, draw) for draw in range(1, TIMES + 1) for known in gaussian_environments()]
    return sorted(found, key=lambda each: each.arms)


def _drawn_anew(known: Environment, draw: int) -> Environment:
    structure = next(each for each in STRUCTURES if each in known.label.split())
    return environment("gaussian", known.arms, structure, delay=known.delay, draw=draw)


def measure(counts: CountTable) -> dict[str, Any]:
    """The ratio with its interval: over all, by the place of the budget (from the first, of those that have it), by arms.

    And the deviation of an environment's mean log ratio, which the plan took from the study.
    """

    def ratio(some: CountTable, group: str = "all") -> dict[str, Any]:
        return interval(sums_by_environment(some, AGAINST, group), np.random.default_rng(SEED))

    budgets: dict[str, list[int]] = {}
    for label, draws in counts:
        budgets.setdefault(label, []).append(draws)
    by_budget = [
        {key: errors for key, errors in counts.items() if key[1] == dict(enumerate(sorted(budgets[key[0]]))).get(place)}
        for place in range(max(len(each) for each in budgets.values()))
    ]
    sums = sums_by_environment(counts, AGAINST, "all")
    return {
        "all": ratio(counts),
        "deviation": float((sums[:, 0] / sums[:, 1]).std(ddof=1)),
        "by budget": [ratio(some) for some in by_budget],
        "by arms": {group: ratio(counts, group) for group in ARMS},
    }


def main() -> None:
    """Play, count, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path)
    parts, results = parser.parse_args().parts, []
    with tempfile.TemporaryDirectory() as folder, Session(parts or Path(folder), runs=RUNS, seed=SEED, quiet=True) as session:
        for each in confirmation():
            budgets = find_budgets(session, each, runs_for(each, SEARCH_RUNS))
            results += session.play(cells_of(each, (CHOSEN, AGAINST), budgets), each.label, runs_for(each, RUNS))
    counts = counts_of(results)
    write_counts(FOLDER / "confirmation.csv", counts, SEED)
    (FOLDER / "confirmation.json").write_text(json.dumps(measure(counts), indent=1) + "\n")


if __name__ == "__main__":
    main()
