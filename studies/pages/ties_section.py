"""The table of docs/reproduction-ties.md, and what the counts behind it show.

    python -m studies.pages.ties_section

Writes the table between its marks on the page, and docs/reproduction/ties/findings.json: whether the two positions of the best
arm agree (Wilson's 95% intervals overlap; Fisher's exact test, Holm's correction over all rows with tracking but the paper's
ties), and every policy's errors over those of the paper's ties, by the mean over both positions.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from service.simulation.error_intervals import wilson
from studies.binary_ties import CASES, COUNTS, PLACES, POLICIES, Counts, counts
from studies.count_agreement import two_sample_p
from studies.error_comparisons import holm_rejections
from studies.pages.markdown import table

PAGE = Path(__file__).parents[2] / "docs" / "reproduction-ties.md"
FINDINGS = COUNTS.with_name("findings.json")
_TIMES = " \N{MULTIPLICATION SIGN} "
PAPER, UNIFORM = POLICIES[0], POLICIES[-1]
NAMES = {
    PAPER: "paper's ties",
    "simple_tracking": "**ties by their limit**",
    "simple_tracking:s=2:guard=0.5": "the same, s = 2, guard 1/2",
    "almost_tracking": "Almost Tracking",
    UNIFORM: "Uniform",
}


def errors_of(found: Counts, case: str, policy: str) -> list[tuple[int, int]]:
    """Errors and runs with the best arm last, then first."""
    rows = [next(row for row in found[case, place] if row["policy"] == policy) for place in PLACES]
    return [(int(row["errors"]), int(row["runs"])) for row in rows]


def ties_table(found: Counts) -> str:
    """Errors of every case and policy, both positions and their mean."""
    lines = []
    for case, _, budget in CASES:
        for policy, name in NAMES.items():
            last, first = (errors for errors, _ in errors_of(found, case, policy))
            head = [case.replace(" x ", _TIMES), f"{budget:,}"] if policy == PAPER else ["", ""]
            lines.append([*head, name, f"{last:,}", f"{first:,}", f"{(last + first) / 2:,.0f}"])
    return table(["means", "T", "", "best arm last", "best arm first", "mean"], lines)


def positions(found: Counts) -> list[dict[str, Any]]:
    """Of every case and tracking policy but the paper's ties: do the two positions agree?"""
    rows: list[dict[str, Any]] = []
    for case, _, _ in CASES:
        for policy in POLICIES:
            if policy not in {PAPER, UNIFORM}:
                last, first = errors_of(found, case, policy)
                (low, _, high), (other_low, _, other_high) = wilson(*last), wilson(*first)
                overlap = low <= other_high and other_low <= high
                pair = {"last": last[0], "first": first[0], "runs": last[1]}
                rows.append({"means": case, "policy": policy, **pair, "overlap": overlap, "p": two_sample_p(*last, *first)})
    fallen = holm_rejections([row["p"] for row in rows])
    return [row | {"differ": differ} for row, differ in zip(rows, fallen, strict=True)]


def over_paper(found: Counts) -> list[dict[str, Any]]:
    """Of every case and policy: its errors in both positions over those of the paper's ties."""
    rows: list[dict[str, Any]] = []
    for case, _, _ in CASES:
        (paper, runs), (paper_first, _) = errors_of(found, case, PAPER)
        for policy in POLICIES[1:]:
            errors = sum(each for each, _ in errors_of(found, case, policy))
            p = two_sample_p(errors, 2 * runs, paper + paper_first, 2 * runs)
            rows.append({"means": case, "policy": policy, "errors": errors, "ratio": errors / (paper + paper_first), "p": p})
    return rows


def main() -> None:
    """The table and the findings."""
    found = counts()
    filled = f"<!-- ties -->\n{ties_table(found)}<!-- /ties -->"
    PAGE.write_text(re.sub("<!-- ties -->.*?<!-- /ties -->", lambda _: filled, PAGE.read_text(), flags=re.DOTALL))
    FINDINGS.write_text(json.dumps({"positions": positions(found), "over_paper": over_paper(found)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
