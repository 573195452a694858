"""The section on sharper weights of the results page."""

from __future__ import annotations

from typing import Any

from studies.pages.markdown import command_of, table
from studies.sharpness import ALMOST, SIMPLE

_SHOWN = ("best baseline", "ts_tc", "eb_tc_eps0", "eb_tc", "dsr", "sr", "cr_a", "uniform")


_ABOUT = """`{command}` ({runs:,} runs, a quarter of them for K = 200 and instance 5; {environments} of 36 environments).
Weights D^(-s); s = 1 is the paper's and the only one with a proof. Budgets are those at which Simple Tracking with s = 1 errs in
20, 5, 1 and (extrapolated) 0.1% of the runs.
"""
_RATIOS = """A ratio below 1 is fewer errors; in brackets how often it is significantly better : worse (two-sided 1%, so about one
in a hundred either way by chance), of how many.
"""
_BEST = """"Best baseline" is the one with the fewest errors in hindsight, another one each time. SR and CR-A are told the budget;
the others are anytime.
"""
_STARVED = """Part of the runs in which the best arm has less than a tenth of an equal share of the draws, at the first / at the
last budget (a quarter of the runs); the environments where it is most for s = 2.
"""
_ALMOST = """Binary rewards tie, which holds Simple Tracking up: [Binary rewards](reproduction-ties.md).
"""
_FOLLOWS = "What follows from it for practice: [Sharper weights in practice](reproduction-sharpness.md).\n"


def sharpness_section(summary: dict[str, Any]) -> str:
    """Ratios to s = 1 by group, the standing against baselines, starvation."""
    sizes = {"runs": summary["settings"]["runs"], "environments": len(summary["environments"])}
    parts = [
        "## Beyond the paper: sharper weights\n",
        _ABOUT.format(command=command_of(summary), **sizes),
        "### Errors relative to s = 1\n",
        _RATIOS,
        _ratio_table(summary, "simple_tracking", SIMPLE[1:]),
        _ratio_table(summary, "almost_tracking", ALMOST[1:]),
        "### Almost Tracking against Simple Tracking with the same s\n",
        _ALMOST,
        _almost_table(summary),
        "### Against the baselines\n",
        _BEST,
        *(f"{group.capitalize()}:\n\n{_baseline_table(summary, group)}" for group in ("gaussian rewards", "binary rewards")),
        "### How often the best arm is starved\n",
        _STARVED,
        _starved_table(summary),
        "![Errors relative to s = 1](reproduction/sharpness/ratios.svg)\n",
        _FOLLOWS,
    ]
    return "\n".join(parts)


def _cell(row: dict[str, Any]) -> str:
    return f"{row['ratio']:.2f} ({row['better']} : {row['worse']} of {row['of']})"


def _almost_table(summary: dict[str, Any]) -> str:
    found = {(row["group"], row["policy"]): row for row in summary["almost_against_simple"]}
    rows = [
        [group, *(_cell(found[group, policy]) if (group, policy) in found else "none" for policy in ALMOST)]
        for group in dict.fromkeys(group for group, _ in found)
    ]
    return table(["group", "s = 1", "s = 1.5", "s = 2"], rows)


def _ratio_table(summary: dict[str, Any], base: str, policies: tuple[str, ...]) -> str:
    found = {(row["group"], row["policy"]): row for row in summary["against_one"]}
    groups = dict.fromkeys(group for group, policy in found if policy.startswith(base))
    head = [base.replace("_", " "), *(policy.split(":")[1] for policy in policies)]
    rows = [
        [group, *(_cell(found[group, policy]) if (group, policy) in found else "none" for policy in policies)] for group in groups
    ]
    return table(head, rows)


def _baseline_table(summary: dict[str, Any], group: str) -> str:
    found = {(r["policy"], r["baseline"]): r for r in summary["against_baselines"] if r["group"] == group}
    policies = list(dict.fromkeys(policy for policy, _ in found))
    rows = [
        [policy, *(_cell(found[policy, name]) if (policy, name) in found else "none" for name in _SHOWN)] for policy in policies
    ]
    return table(["policy", *_SHOWN], rows) if rows else "not played\n"


def _starved_table(summary: dict[str, Any]) -> str:
    found: dict[str, dict[str, list[float]]] = {}
    for row in summary["starved"]:
        found.setdefault(row["environment"], {})[row["policy"]] = row["starved"]
    policies = list(dict.fromkeys(row["policy"] for row in summary["starved"]))
    worst = sorted(found.items(), key=lambda item: -max(item[1][policies[-1]]))[:10]
    rows = [[label, *(f"{shares[policy][0]:.3f} / {shares[policy][-1]:.3f}" for policy in policies)] for label, shares in worst]
    return table(["environment", *policies], rows)
