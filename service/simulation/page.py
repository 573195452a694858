"""docs/reproduction.md from the result files of a full run: published against ours, with a plain verdict on each line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from service.errors import InvalidValue
from service.simulation.algorithms.catalogue import contender
from service.simulation.page_sharpness import sharpness_section
from service.simulation.summaries import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Summary = dict[str, Any]

_OPENING = """# The paper, reproduced

This page is written by `bestarm reproduce page` from the result files in `docs/reproduction/`; every number in it comes from
there. Rewards are Gaussian with unit variance unless said otherwise. PoE is the probability of a wrong recommendation, with
Wilson's 95% interval. A rate is H · log(1/PoE) / T; the published ones are integers of errors only with four times the H that
the paper defines ("paper's convention"), so both are printed. Verdicts: **reproduced** (the counts or intervals agree), **not
reproduced**, and **not pinned down by the paper** (it leaves open what the number depends on).
"""
_ABOUT_BUDGETS = """The paper does not print its budgets. Ours, the smallest multiple of 100 at which Simple Tracking's PoE is at
most 0.05: {budgets}. A rate depends on its budget, so only the ordering can be refuted; where the interval of a rate overlaps
with the published one the line says reproduced.
"""
_ABOUT_SR = "The limit is for T to infinity; at PoE near 0.05 the constant still counts.\n"
_ABOUT_COUNTS = """Published PoE = exp(-rate · T / 348). Fisher's exact test, Holm's correction at 1% over the lines with any
error. The paper leaves open DSR's first epoch, Almost Tracking's test of sufficiency (both readings are shown) and how TS-TC
breaks ties, which are common with it; where these differ the line says not pinned down.
"""
_LEFT_OPEN = ("dsr", "almost_tracking", "ts_tc")
_NONE = "none"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def span(values: Sequence[float], digits: int = 3) -> str:
    """The value, with (low to high)."""
    low, value, high = (f"{number:.{digits}f}" if number < float("inf") else "∞" for number in values)
    return f"{value} ({low} to {high})"


def _title(policy: str) -> str:
    return contender(policy).title


def _settings(summary: Summary) -> str:
    settings, played = summary["settings"], summary["played"]
    runs = f"{settings['runs']:,} runs"
    if played["fewest"] < settings["runs"]:
        runs = f"**unfinished**: {played['fewest']:,} to {played['most']:,} of {runs} a cell; the same command goes on"
    return f"`{settings['command']}` ({runs}; seed {settings['seed']}).\n"


def _rates_verdict(row: Summary) -> str:
    """The budgets behind the published rates are not known, so a rate can agree but not disagree."""
    if row["published"] is None:
        return "not published"
    low, _, high = row["published"]
    ours = row["paper"]
    return "reproduced" if ours[0] <= high and ours[2] >= low else "not pinned down by the paper"


def _minimax(summary: Summary) -> str:
    """Budgets, both tables of rates, the claim, SR's exponent."""
    budgets = ", ".join(f"{name}: {draws:,}" for name, draws in summary["budgets"].items())
    parts = [
        "## Worst rates over the ten instances\n",
        _settings(summary),
        _ABOUT_BUDGETS.format(budgets=budgets),
    ]
    for name in ("H1", "H2", "H3"):
        rows = [
            [
                _title(policy),
                span(row["paper"]),
                span(row["plain"], 4),
                row["instance"] + ("" if row["instances"] == len(summary["budgets"]) else f" (of {row['instances']})"),
                span([row["published"][0], row["published"][1], row["published"][2]]) if row["published"] else _NONE,
                _rates_verdict(row),
            ]
            for policy, row in sorted(summary["worst"][name].items(), key=lambda item: -item[1]["paper"][1])
        ]
        head = ("policy", "worst rate, paper's convention", "plain", "worst instance", "published", "verdict")
        parts += [f"### Under {name}\n", table(head, rows)]
    parts += [_claim(summary), _poe_table(summary), _sr(summary)]
    parts.append("![Worst rates under H1](reproduction/minimax-rates/worst-h1.svg)\n")
    parts.append("![Error over time](reproduction/minimax-rates/curves.svg)\n")
    return "\n".join(parts)


def _claim(summary: Summary) -> str:
    """Is the worst rate of the tracking policies above every baseline's?"""
    lines = ["### The claim: both tracking policies above every baseline\n"]
    for name in ("H1", "H2"):
        for policy in dict.fromkeys(row["policy"] for row in summary["claim"][name]):
            rows = [row for row in summary["claim"][name] if row["policy"] == policy]
            above = [_title(row["baseline"]) for row in rows if row["verdict"] == "above"]
            others = [f"{_title(row['baseline'])} ({row['verdict']})" for row in rows if row["verdict"] != "above"]
            verdict = "**reproduced**" if not others else "**not reproduced**"
            against = f"; not above {', '.join(others)}" if others else ""
            lines.append(f"- {name}, {_title(policy)}: {verdict}. Above {', '.join(above) or 'none'}, intervals apart{against}.")
    return "\n".join(lines) + "\n"


def _poe_table(summary: Summary) -> str:
    """PoE of every policy on every instance."""
    instances = list(summary["budgets"])
    policies = list(dict.fromkeys(cell["policy"] for cell in summary["cells"]))
    found = {(cell["policy"], cell["instance"]): f"{cell['poe'][1]:.4f}" for cell in summary["cells"]}
    rows = [[_title(policy), *(found.get((policy, name), _NONE) for name in instances)] for policy in policies]
    return "### PoE on each instance\n\n" + table(("policy", *instances), rows)


def _sr(summary: Summary) -> str:
    """SR's measured exponent beside the exact limit."""
    rows = [
        [row["instance"], span([1000 * x for x in row["measured"]], 4), f"{1000 * row['limit']:.4f}", f"{row['ratio']:.2f}"]
        for row in summary["sr_exponent"]
    ]
    head = ("instance", "1000 · log(1/PoE)/T", "1000 / (H3 olog K)", "ratio")
    return "\n".join(["### SR's exponent against its exact limit\n", _ABOUT_SR, table(head, rows)])


def _budgets(summary: Summary) -> str:
    """Instance 9 by budget, and the independent simulator."""
    rows = []
    for row in summary["rows"]:
        if row["published_errors"] is None:
            verdict, theirs, p = "not published", _NONE, _NONE
        else:
            theirs, p = f"{row['published_errors'] / 10000:.4f}", f"{row['p']:.2g}"
            verdict = "**not reproduced**" if row["differs"] else "reproduced"
            if row["differs"] and row["policy"].startswith(_LEFT_OPEN):
                verdict = "not pinned down by the paper"
        rows.append([f"{row['budget']:,}", _title(row["policy"]), span(row["poe"], 4), theirs, p, verdict])
    head = ("T", "policy", "our PoE", "published PoE", "p", "verdict")
    independent = [
        [
            _title(row["policy"]),
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
            _settings(summary),
            _ABOUT_COUNTS,
            table(head, rows),
            "### Against an independent simulator, T = 2,000\n",
            table(("policy", "ours", "theirs (runs)", "p", "at 1% with Holm's correction"), independent),
        ]
    )


def _curves(heading: str, note: str) -> Callable[[Summary, str], str]:
    """A section of final errors and figures."""

    def section(summary: Summary, study: str) -> str:
        claims = [
            [row["instance"].replace("_", " "), row["claim"], f"**{row['verdict']}**", "; ".join(row["exceptions"]) or _NONE]
            for row in summary["claims"]
        ]
        parts = [f"## {heading}\n", _settings(summary), note + "\n"]
        parts.append(table(("instance", "what the paper says", "verdict", "exceptions"), claims))
        for label, found in summary["tables"].items():
            rows = [[_title(row["policy"]), span(row["poe"], 4)] for row in found["rows"]]
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
    sections = [_OPENING]
    makers: dict[str, Callable[[Summary], str]] = {
        "minimax-rates": _minimax,
        "budgets": _budgets,
        "real-world": lambda summary: _real_world(summary, "real-world"),
        "short-horizon": lambda summary: _short_horizon(summary, "short-horizon"),
        "sharpness": sharpness_section,
    }
    for study, maker in makers.items():
        path = folder / study / SUMMARY
        if path.exists():
            sections.append(maker(json.loads(path.read_text())))
    if len(sections) == 1:
        raise InvalidValue("/from", f"There are no results in {folder}; make them with `bestarm reproduce all --out {folder}`.")
    target.write_text("\n".join(sections))
