"""Worst rates over instances under H1, H2 and H3, in the plain convention and the paper's, beside the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.simulation import charts
from service.simulation.algorithms.catalogue import contender
from service.simulation.complexity import h1, h2, h3, sr_exponent
from service.simulation.environments import published
from service.simulation.metrics import PAPER_FACTOR, Outcome, rate_interval, wilson, worst_rate
from service.simulation.studies.lineup import PUBLISHED_AS, TRACKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from service.simulation.session import Result

COMPLEXITIES = {"H1": h1, "H2": h2, "H3": h3}


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """Budgets, every cell's rates, the worst rates, and the claim that both tracking policies beat every baseline."""
    policies = list(dict.fromkeys(result.cell.policy for result in results))
    worst = {name: {policy: _worst(results, policy, name) for policy in policies} for name in COMPLEXITIES}
    return {
        "budgets": {result.cell.environment.label: result.cell.budget for result in results},
        "cells": [_cell_rates(result) for result in results],
        "worst": worst,
        "claim": {name: _claim(table) for name, table in worst.items()},
        "sr_exponent": [_sr_exponent(result) for result in results if result.cell.policy == "sr"],
    }


def _cell_rates(result: Result) -> dict[str, Any]:
    """One cell's PoE and rates in the paper's convention (the plain one is a quarter)."""
    world = result.cell.environment
    row: dict[str, Any] = {"instance": world.label, "policy": result.cell.policy, "budget": result.cell.budget}
    row |= {"runs": result.runs, "errors": result.final, "poe": list(wilson(result.final, result.runs))}
    for name, complexity in COMPLEXITIES.items():
        scaled = PAPER_FACTOR * complexity(world.means)
        row[name] = list(rate_interval(result.final, result.runs, scaled, result.cell.budget))
    return row


def _worst(results: Sequence[Result], policy: str, name: str) -> dict[str, Any]:
    """The policy's worst rate with its interval, in both conventions, and the published one."""
    outcomes = [
        Outcome(
            r.cell.environment.label,
            r.final,
            r.runs,
            COMPLEXITIES[name](r.cell.environment.means),
            r.cell.budget,
        )
        for r in results
        if r.cell.policy == policy
    ]
    low, value, high, where = worst_rate(outcomes)
    printed = published()["minimax_rates"]["rates"].get(name, {}).get(PUBLISHED_AS.get(policy, ""))
    return {
        "plain": [low, value, high],
        "paper": [PAPER_FACTOR * low, PAPER_FACTOR * value, PAPER_FACTOR * high],
        "instance": where,
        "instances": len(outcomes),
        "published": printed,
    }


def _claim(table: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """For every tracking policy and baseline: above (intervals apart), higher, lower, or below (intervals apart)."""
    verdicts = []
    everywhere = max(row["instances"] for row in table.values())
    for ours in TRACKING:
        for policy, row in table.items():
            if ours not in table or policy in TRACKING or row["instances"] < everywhere:
                continue
            mine = table[ours]["plain"]
            if mine[0] > row["plain"][2]:
                verdict = "above"
            elif mine[2] < row["plain"][0]:
                verdict = "below"
            else:
                verdict = "higher, intervals overlap" if mine[1] > row["plain"][1] else "lower, intervals overlap"
            verdicts.append({"policy": ours, "baseline": policy, "verdict": verdict})
    return verdicts


def _sr_exponent(result: Result) -> dict[str, Any]:
    """SR's measured log(1/PoE)/T beside its limit 1/(H3 olog K)."""
    cell = result.cell
    low, value, high = rate_interval(result.final, result.runs, 1.0, cell.budget)
    limit = sr_exponent(cell.environment.means)
    return {"instance": cell.environment.label, "measured": [low, value, high], "limit": limit, "ratio": value / limit}


def draw_figures(folder: Path, summary: dict[str, Any]) -> None:
    """The worst rates with their intervals, best first."""
    for name in ("H1", "H2"):
        rows = [
            {"policy": contender(policy).title, "low": row["paper"][0], "value": row["paper"][1], "high": row["paper"][2]}
            for policy, row in summary["worst"][name].items()
        ]
        rows.sort(key=lambda row: -row["value"])
        title = f"Worst rate over the instances under {name} (paper's convention), 95% intervals"
        charts.draw(charts.intervals(rows, title, "rate, larger is better"), folder / f"worst-{name.lower()}")
