"""The section on worst rates of the results page: the tables, the paper's claim, and the claim at other budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.lineup import BASELINES, TRACKING
from studies.pages.markdown import NONE, Summary, paragraph, percent, settings_line, span, table, title_of, titles_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABOUT_BUDGETS = """The paper does not print its budgets. Ours, the smallest multiple of 100 at which Simple Tracking's PoE is at
most 0.05: {budgets}. A rate depends on its budget. So a line says **reproduced** where the intervals overlap, *not pinned down
by the paper* where other budgets of the paper's range (its best algorithm errs in 1 to 10% of the runs) could give the published
rate, and **not reproduced** where none that was tried could: its reach is taken from the runs of the sharpness study, in which
Simple Tracking errs in 20, 5 and 1%.
"""
_ABOUT_SR = "The limit is for T to infinity; at PoE near 0.05 the constant still counts.\n"
_ABOUT_LEVELS = """The worst rates again at budgets of four lengths, from the runs of the sharpness study ({runs:,} runs, a
quarter of them on instance 5). At 0.1% a handful of errors decides, so read the intervals there, not the order. Budgets of the
ten instances: {budgets}.
"""
_ABOUT_RATIOS = """Ours over published, {measure}: {ratios}. {remark}
"""
_REMARKS = {
    "H1": "Near 1 for Simple and Almost Tracking and SR.",
    "H2": "Near 2 for Simple and Almost Tracking and SR, which 2 · H2 in place of 4 · H2 would explain; the paper does not say.",
}
_MEASURES = ("H1", "H2", "H3")


def rates_verdict(policy: str, row: Summary, reach: Summary) -> str:
    """Whether the published worst rate agrees with ours, or could at another budget."""
    if row["published"] is None:
        return "not published"
    low, _, high = row["published"]
    if row["paper"][0] <= high and row["paper"][2] >= low:
        return "reproduced"
    if policy in reach and (reach[policy][0] > high or reach[policy][1] < low):
        return "**not reproduced**"
    return "not pinned down by the paper"


def minimax_section(summary: Summary, sharpness: Summary) -> str:
    """Budgets, the tables of rates, the claim, SR's exponent."""
    budgets = ", ".join(f"{name}: {draws:,}" for name, draws in summary["budgets"].items())
    by_level = sharpness.get("by_level", {})
    parts = ["## Worst rates over the ten instances\n", settings_line(summary)]
    parts.append(paragraph(_ABOUT_BUDGETS.format(budgets=budgets)))
    for measure in _MEASURES:
        reach = by_level["reach"][measure] if by_level else {}
        rows = [
            [
                title_of(policy),
                span(row["paper"]),
                span(row["plain"], 4),
                row["instance"] + ("" if row["instances"] == len(summary["budgets"]) else f" (of {row['instances']})"),
                span(row["published"]) if row["published"] else NONE,
                f"{reach[policy][0]:.3f} to {reach[policy][1]:.3f}" if policy in reach else NONE,
                rates_verdict(policy, row, reach),
            ]
            for policy, row in sorted(summary["worst"][measure].items(), key=lambda item: -item[1]["paper"][1])
        ]
        head = ("policy", "worst rate, paper's convention", "plain", "worst instance", "published", "reach", "verdict")
        parts += [f"### Under {measure}\n", table(head, rows), _ratios(summary, measure)]
    parts.append("![Worst rates under H1](reproduction/minimax-rates/worst-h1.svg)\n")
    parts += [_claim(summary), _levels(sharpness), _poe_table(summary), _sr(summary)]
    parts.append("![Error over time](reproduction/minimax-rates/curves.svg)\n")
    return "\n".join(part for part in parts if part)


def _ratios(summary: Summary, measure: str) -> str:
    """Our worst rates over the published ones."""
    found = {policy: row for policy, row in summary["worst"][measure].items() if row["published"]}
    ratios = ", ".join(f"{title_of(policy)} {row['paper'][1] / row['published'][1]:.2f}" for policy, row in found.items())
    return paragraph(_ABOUT_RATIOS.format(measure=measure, ratios=ratios, remark=_REMARKS[measure])) if found else ""


def _claim(summary: Summary) -> str:
    """Is the worst rate of the tracking policies above every baseline's?"""
    lines = ["### The claim: both tracking policies above every baseline\n"]
    for name in ("H1", "H2"):
        for policy in dict.fromkeys(row["policy"] for row in summary["claim"][name]):
            rows = [row for row in summary["claim"][name] if row["policy"] == policy]
            above = titles_of(row["baseline"] for row in rows if row["verdict"] == "above")
            others = [f"{title_of(row['baseline'])} ({row['verdict']})" for row in rows if row["verdict"] != "above"]
            verdict = "**reproduced**" if not others else "**not reproduced**"
            against = f"; not above {', '.join(others)}" if others else ""
            line = f"- {name}, {title_of(policy)}: {verdict}. Above {above}, intervals apart{against}."
            lines.append(paragraph(line, indent="  ").rstrip())
    return "\n".join(lines) + "\n"


def not_below(by_level: Summary, measure: str, policy: str, level: int) -> list[str]:
    """The baselines whose worst rate at this level is higher than the policy's."""
    worst = by_level["worst"][measure]
    own = worst[policy][level]["rate"][1]
    return [name for name in BASELINES if name in worst and worst[name][level]["rate"][1] >= own]


def _levels(sharpness: Summary) -> str:
    """The claim at shorter and longer budgets."""
    by_level = sharpness.get("by_level", {})
    if not by_level:
        return ""
    budgets = "; ".join(f"{name}: {', '.join(f'{draws:,}' for draws in found)}" for name, found in by_level["budgets"].items())
    levels: Sequence[str] = by_level["levels"]
    about = _ABOUT_LEVELS.format(runs=sharpness["settings"]["runs"], budgets=budgets)
    parts = ["### The claim at other budgets\n", paragraph(about)]
    for measure in ("H1", "H2"):
        worst = sorted(by_level["worst"][measure].items(), key=lambda item: -item[1][1]["rate"][1])
        rows = [[title_of(policy), *(span(found["rate"]) for found in row)] for policy, row in worst]
        head = [f"{measure}: Simple Tracking errs in", *(percent(level) for level in levels)]
        parts.append(table(head, rows))
    lines = []
    for policy in (name for name in TRACKING if name in by_level["worst"]["H1"]):
        for place, level in enumerate(levels):
            others = not_below(by_level, "H1", policy, place)
            lines.append(f"- {title_of(policy)} at {percent(level)}, H1: not above {titles_of(others)}.")
    parts += ["\n".join(lines) + "\n", "![Worst rates by level of error](reproduction/sharpness/levels.svg)\n"]
    return "\n".join(parts)


def _poe_table(summary: Summary) -> str:
    """PoE of every policy on every instance."""
    instances = list(summary["budgets"])
    policies = list(dict.fromkeys(cell["policy"] for cell in summary["cells"]))
    found = {(cell["policy"], cell["instance"]): f"{cell['poe'][1]:.4f}" for cell in summary["cells"]}
    rows = [[title_of(policy), *(found.get((policy, name), NONE) for name in instances)] for policy in policies]
    return "### PoE on each instance\n\n" + table(("policy", *instances), rows)


def _sr(summary: Summary) -> str:
    """SR's measured exponent beside the exact limit."""
    rows = [
        [row["instance"], span([1000 * x for x in row["measured"]], 4), f"{1000 * row['limit']:.4f}", f"{row['ratio']:.2f}"]
        for row in summary["sr_exponent"]
    ]
    head = ("instance", "1000 · log(1/PoE)/T", "1000 / (H3 olog K)", "ratio")
    return "\n".join(["### SR's exponent against its exact limit\n", _ABOUT_SR, table(head, rows)])
