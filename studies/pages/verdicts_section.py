"""The opening of the results page: every statement of the paper with its verdict, before the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.pages.markdown import Summary, percent, table, title_of, titles_of
from studies.pages.worst_rates_section import not_below, rates_verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

Summaries = dict[str, Summary]
Line = tuple[str, str, str]
# What the paper leaves open, with the consequence that a difference proves nothing.
LEFT_OPEN = ("dsr", "almost_tracking", "ts_tc")
_OURS = ("simple_tracking", "almost_tracking")


def verdicts_section(found: Summaries) -> str:
    """A table of statements, from whichever studies are there."""
    lines = [*_rates(found), *_published_rates(found), *_budgets(found), *_curves(found)]
    return "## In short\n\n" + table(("statement", "verdict", "because"), lines) if lines else ""


def _rates(found: Summaries) -> Iterator[Line]:
    """The paper's claim, and the part of it that holds."""
    if "minimax-rates" not in found:
        return
    claim = found["minimax-rates"]["claim"]
    for measure in ("H1", "H2"):
        rows = [row for row in claim[measure] if row["policy"] in _OURS]
        failing = [row["baseline"] for row in rows if row["verdict"] != "above"]
        reverse = [row["baseline"] for row in rows if row["verdict"] == "below"]
        because = f"above {titles_of(row['baseline'] for row in rows if row['baseline'] not in failing)}, intervals apart"
        if reverse:
            because += f"; clearly below {titles_of(reverse)}"
        if undecided := [name for name in failing if name not in reverse]:
            because += f"; not apart from {titles_of(undecided)}"
        verdict = "**not reproduced**" if failing else "reproduced"
        yield f"worst rate under {measure}: both tracking policies above every baseline", verdict, because
    by_level: Summary = found.get("sharpness", {}).get("by_level", {})
    for place, level in enumerate(by_level.get("levels", ())):
        better = dict.fromkeys(name for policy in _OURS for name in not_below(by_level, "H1", policy, place))
        statement = f"the same under H1 where Simple Tracking errs in {percent(level)}"
        yield statement, "**not reproduced**" if better else "reproduced", f"by the estimates not above {titles_of(better)}"


def _published_rates(found: Summaries) -> Iterator[Line]:
    """The published worst rates by verdict."""
    if "minimax-rates" not in found:
        return
    by_level = found.get("sharpness", {}).get("by_level")
    for measure in ("H1", "H2"):
        groups: dict[str, list[str]] = {}
        for policy, row in found["minimax-rates"]["worst"][measure].items():
            verdict = rates_verdict(policy, row, by_level["reach"][measure] if by_level else {})
            if verdict != "not published":
                groups.setdefault(verdict, []).append(policy)
        for verdict, policies in groups.items():
            yield f"published worst rates under {measure}", verdict, titles_of(policies)


def _budgets(found: Summaries) -> Iterator[Line]:
    """Instance 9 against the paper's counts and the independent simulator's."""
    if "budgets" not in found:
        return
    rows = [row for row in found["budgets"]["rows"] if row["published_errors"] is not None]
    agree = sum(not row["differs"] for row in rows)
    yield "published error counts on instance 9", "reproduced", f"{agree} of {len(rows)} lines agree"
    for row in rows:
        if row["differs"]:
            open_ = row["policy"].startswith(LEFT_OPEN)
            verdict = "not pinned down by the paper" if open_ else "**not reproduced**"
            counts = f"{row['errors']} wrong in {row['runs']:,} runs, published {row['published_errors']} in 10,000"
            yield f"{title_of(row['policy'])} on instance 9, T = {row['budget']:,}", verdict, counts
    independent = found["budgets"]["independent"]
    differing = [row["policy"] for row in independent if row["differs"]]
    because = f"{len(independent) - len(differing)} of {len(independent)} policies agree at 1% with Holm's correction"
    verdict = f"differs: {titles_of(differing)}" if differing else "agrees"
    yield "an independent simulator on instance 9, T = 2,000", verdict, because


def _curves(found: Summaries) -> Iterator[Line]:
    """What the paper reads off its figures."""
    for study in ("real-world", "short-horizon"):
        for row in found.get(study, {}).get("claims", []):
            where = f"instance {row['instance']}" if row["instance"].isdigit() else row["instance"].replace("_", " ")
            verdict = row["verdict"] if row["verdict"] == "reproduced" else f"**{row['verdict']}**"
            yield f"{where}: {row['claim']}", verdict, "; ".join(row["exceptions"]) or "every comparison"
