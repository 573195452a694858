"""Instance 9 by budget, in errors of 10,000 runs: the published rates say them exactly, PoE = exp(-rate T / 348).

Comparing counts needs no convention. Two counts agree if Fisher's exact test, with Holm's correction over the table at
1%, does not part them. At T = 2,000 there are also the counts of an independent simulator.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from service.simulation import figures
from service.simulation.complexity import h1
from service.simulation.environments import instance
from service.simulation.error_intervals import wilson
from service.simulation.kernels.catalogue import contender
from studies.count_agreement import holm, two_sample_p
from studies.error_rates import PAPER_FACTOR, rate_interval
from studies.lineup import PUBLISHED_AS
from studies.published_rates import published_rates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from service.simulation.session import Result

_PUBLISHED_RUNS = 10_000
INDEPENDENT_BUDGET = 2000
INDEPENDENT: dict[str, tuple[float, int]] = {
    "sr": (0.0237, 20_000),
    "cr_a": (0.0043, 40_000),
    "cr_c": (0.0192, 40_000),
    "eb_tc": (0.0927, 6_000),
    "simple_tracking": (0.0092, 10_000),
    "almost_tracking": (0.0148, 40_000),
    "almost_tracking:realised": (0.0114, 40_000),
    "ts_tc": (0.0085, 6_000),
    "sh": (0.0566, 40_000),
}


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """Ours beside the published and the independent counts."""
    scaled = PAPER_FACTOR * h1(instance("9").means)
    rows = []
    for r in results:
        row: dict[str, Any] = {"policy": r.cell.policy, "budget": r.cell.budget, "runs": r.runs, "errors": r.final}
        row["poe"] = list(wilson(r.final, r.runs))
        row["rate"] = list(rate_interval(r.final, r.runs, scaled, r.cell.budget))
        row["published_errors"] = published_errors(r.cell.policy, r.cell.budget, scaled)
        rows.append(row)
    return {"rows": _judged(rows), "independent": _independent(results)}


def draw_figure(folder: Path, results: Sequence[Result]) -> None:
    """The error by budget, a line a policy; a budget without an error has no logarithm."""
    erring = [result for result in results if result.final > 0]
    rows = [{"policy": contender(r.cell.policy).title, "draws": r.cell.budget, "poe": r.final / r.runs} for r in erring]
    if rows:
        curves = figures.error_curves(rows, f"instance 9 by budget, {results[0].runs:,} runs")
        # With points, because most policies err at the smallest budget alone.
        figures.draw({**curves, "mark": {"type": "line", "point": {"size": 60}}}, folder / "by-budget")


def published_errors(policy: str, budget: int, scaled: float) -> int | None:
    """The number of errors that the published rate stands for; None where nothing is published."""
    table = published_rates()["instance_9_by_budget"]
    title = PUBLISHED_AS.get(policy.split(":t1", maxsplit=1)[0])
    if title not in table["order"] or str(budget) not in table["rates"]:
        return None
    printed = table["rates"][str(budget)][table["order"].index(title)]
    return 0 if printed is None else round(_PUBLISHED_RUNS * math.exp(-printed * budget / scaled))


def _judged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the p-value against the published count, and whether Holm's procedure rejects.

    Where neither side has an error nothing could be rejected, so these comparisons do not count in the correction.
    """
    compared = [row for row in rows if row["published_errors"] is not None]
    for row in compared:
        row["p"] = two_sample_p(row["errors"], row["runs"], row["published_errors"], _PUBLISHED_RUNS)
        row["differs"] = False
    telling = [row for row in compared if row["errors"] or row["published_errors"]]
    for row, rejected in zip(telling, holm([row["p"] for row in telling]), strict=True):
        row["differs"] = rejected
    return rows


def _independent(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The comparison with the independent simulator."""
    rows: list[dict[str, Any]] = []
    for r in results:
        if r.cell.budget != INDEPENDENT_BUDGET or r.cell.policy not in INDEPENDENT:
            continue
        share, runs = INDEPENDENT[r.cell.policy]
        p = two_sample_p(r.final, r.runs, round(share * runs), runs)
        rows.append({"policy": r.cell.policy, "poe": r.final / r.runs, "theirs": share, "their_runs": runs, "p": p})
    for row, rejected in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["differs"] = rejected
    return rows
