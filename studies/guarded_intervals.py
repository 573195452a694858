"""How sure the geometric means of guarded weights are: intervals over environments, from the counts that there are.

    python -m studies.guarded_intervals

The chosen weights against each other policy, as in the judgement and its extension together, by kind of rewards. Environments are
drawn again with replacement, each with all its budgets (percentile bootstrap, 95%). Writes
docs/reproduction/guarded/intervals.json. What the intervals cannot tell is how other environments would be than those chosen.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.count_files import read_counts
from studies.error_comparisons import CountTable, ratio_of
from studies.guarded_choice import groups_of
from studies.guarded_extension import CHOSEN, FOLDER, judged_counts

if TYPE_CHECKING:
    from service.inference.samples import Floats

SEED, RESAMPLES = 20263, 20_000
GROUPS = ("all", "Gaussian rewards", "binary rewards", "bounded rewards", "2 to 5 arms", "10 and 40 arms", "200 and 1,000 arms")
_ENDS = (2.5, 97.5)


def extension_counts() -> CountTable:
    """(errors, runs) of the further environments."""
    return read_counts(FOLDER / "extension.csv")


def sums_by_environment(counts: CountTable, other: str, group: str) -> Floats:
    """Of each environment of a group: the sum of the logs of the ratios, and how many there are."""
    found: dict[str, list[float]] = {}
    for (label, _), errors in counts.items():
        if CHOSEN in errors and other in errors and group in groups_of(label):
            found.setdefault(label, []).append(math.log(ratio_of(errors[CHOSEN], errors[other])))
    return np.array([(sum(logs), len(logs)) for logs in found.values()])


def interval(sums: Floats, rng: np.random.Generator) -> dict[str, Any]:
    """The geometric mean of all ratios, with its interval."""
    drawn = sums[rng.integers(len(sums), size=(RESAMPLES, len(sums)))].sum(axis=1)
    low, high = np.exp(np.percentile(drawn[:, 0] / drawn[:, 1], _ENDS))
    ratio = math.exp(sums[:, 0].sum() / sums[:, 1].sum())
    return {
        "ratio": ratio,
        "low": float(low),
        "high": float(high),
        "environments": len(sums),
        "comparisons": int(sums[:, 1].sum()),
    }


def main() -> None:
    """Every other policy, in every group that it was played in."""
    counts = {**judged_counts(), **extension_counts()}
    others = sorted({policy for errors in counts.values() for policy in errors} - {CHOSEN})
    found: dict[str, dict[str, Any]] = {}
    for other in others:
        for group in GROUPS:
            sums = sums_by_environment(counts, other, group)
            if len(sums):
                found.setdefault(other, {})[group] = interval(sums, np.random.default_rng(SEED))
    (FOLDER / "intervals.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
