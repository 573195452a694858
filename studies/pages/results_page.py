"""docs/reproduction.md from the result files of a full run: published against ours, with a plain verdict on each line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from service.errors import InvalidValue
from studies.pages.markdown import NONE, Summary, settings_line, span, table, title_of
from studies.pages.sharpness_section import sharpness_section
from studies.pages.verdicts_section import LEFT_OPEN, verdicts_section
from studies.pages.worst_rates_section import minimax_section
from studies.summaries.summary_files import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_OPENING = """# The paper, reproduced

This page is written by `make reproduction-page` from the result files in `docs/reproduction/`; every number in it comes from
there. Rewards are Gaussian with unit variance unless said otherwise. PoE is the probability of a wrong recommendation, with
Wilson's 95% interval. A rate is H · log(1/PoE) / T; the published ones are integers of errors only with four times the H that
the paper defines ("paper's convention"), so both are printed. Verdicts: **reproduced** (the counts or intervals agree), **not
reproduced**, and **not pinned down by the paper** (it leaves open what the number depends on). Further pages: [sharper weights in
practice](reproduction-sharpness.md), [binary rewards and ties](reproduction-ties.md), [the simulator: equality, speed,
memory](reproduction-simulator.md).
"""
_ABOUT_COUNTS = """Published PoE = exp(-rate · T / 348). Fisher's exact test, Holm's correction at 1% over the lines with any
error. The paper leaves open DSR's first epoch, Almost Tracking's test of sufficiency (both readings are shown) and how TS-TC
breaks ties, which are common with it; where these differ the line says not pinned down.
"""


def _budgets(summary: Summary) -> str:
    """Instance 9 by budget, and the independent simulator."""
    rows = []
    for row in summary["rows"]:
        if row["published_errors"] is None:
            verdict, theirs, p = "not published", NONE, NONE
        else:
            theirs, p = f"{row['published_errors'] / 10000:.4f}", f"{row['p']:.2g}"
            verdict = "**not reproduced**" if row["differs"] else "reproduced"
            if row["differs"] and row["policy"].startswith(LEFT_OPEN):
                verdict = "not pinned down by the paper"
        rows.append([f"{row['budget']:,}", title_of(row["policy"]), span(row["poe"], 4), theirs, p, verdict])
    head = ("T", "policy", "our PoE", "published PoE", "p", "verdict")
    independent = [
        [
            title_of(row["policy"]),
            f"{row['poe']:.4f}",
            f"{row['theirs']:.4f} ({row['their_runs']:,})",
            f"{row['p']:.3f}",
            "differs" if row["differs"] else "agrees",
        ]
        for row in summary["independent"]
    ]
    return "\n".join(
        [
            "## Instance 9 by budget\n",
            settings_line(summary),
            _ABOUT_COUNTS,
            table(head, rows),
            "![Error by budget](reproduction/budgets/by-budget.svg)\n",
            "### Against an independent simulator, T = 2,000\n",
            table(("policy", "ours", "theirs (runs)", "p", "at 1% with Holm's correction"), independent),
        ]
    )


def _curves(heading: str, note: str) -> Callable[[Summary, str], str]:
    """A section of final errors and figures."""

    def section(summary: Summary, study: str) -> str:
        claims = [
            [row["instance"].replace("_", " "), row["claim"], f"**{row['verdict']}**", "; ".join(row["exceptions"]) or NONE]
            for row in summary["claims"]
        ]
        parts = [f"## {heading}\n", settings_line(summary), note + "\n"]
        parts.append(table(("instance", "what the paper says", "verdict", "exceptions"), claims))
        for label, found in summary["tables"].items():
            rows = [[title_of(row["policy"]), span(row["poe"], 4)] for row in found["rows"]]
            parts += [f"### {label.replace('_', ' ')}, T = {found['budget']:,}\n", table(("policy", "PoE"), rows)]
            parts.append(f"![Error over time]({'reproduction/' + study}/{label}.svg)\n")
        return "\n".join(parts)

    return section


_real_world = _curves(
    "Real-world instances",
    """The paper shows figures without numbers: both tracking policies lowest, except that CR is comparable on MovieLens and poor
on Open Bandit. Over time as in the paper: SH, DSH and DSR recommend the winner of their latest finished round or epoch.""",
)
_short_horizon = _curves(
    "T = 1,000, CR with theta0 = 1/olog K",
    "The paper shows figures without numbers and says that CR-A and CR-C err significantly more than the others here.",
)


def write_page(folder: Path, target: Path) -> None:
    """The page, from whichever studies the folder holds."""
    makers: dict[str, Callable[[Summary], str]] = {
        "minimax-rates": lambda summary: minimax_section(summary, found.get("sharpness", {})),
        "budgets": _budgets,
        "real-world": lambda summary: _real_world(summary, "real-world"),
        "short-horizon": lambda summary: _short_horizon(summary, "short-horizon"),
        "sharpness": sharpness_section,
    }
    paths = {study: folder / study / SUMMARY for study in makers}
    found: dict[str, Summary] = {study: json.loads(path.read_text()) for study, path in paths.items() if path.exists()}
    if not found:
        raise InvalidValue("/from", f"There are no results in {folder}; make them with `python -m studies all --out {folder}`.")
    sections = [_OPENING, verdicts_section(found), *(makers[study](summary) for study, summary in found.items())]
    target.write_text("\n".join(section for section in sections if section))
