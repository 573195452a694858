"""Worst rates over instances under H1, H2 and H3, in the plain convention and the paper's, beside the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.simulation import figures
from service.simulation.complexity import h1, h2, h3, sr_exponent
from service.simulation.error_intervals import wilson
from service.simulation.kernels.catalogue import contender
from studies.error_rates import PAPER_FACTOR, Outcome, rate_interval, worst_rate
from studies.lineup import PUBLISHED_AS, TRACKING
from studies.published_rates import published_rates

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
        "claim": {name: _claim(results, policies, name) for name in COMPLEXITIES},
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


def _outcomes(results: Sequence[Result], policy: str, name: str) -> list[Outcome]:
    """The policy's errors on every instance it was played on."""
    return [
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


def _worst(results: Sequence[Result], policy: str, name: str) -> dict[str, Any]:
    """The policy's worst rate with its interval, in both conventions, and the published one."""
    outcomes = _outcomes(results, policy, name)
    low, value, high, where = worst_rate(outcomes)
    printed = published_rates()["minimax_rates"]["rates"].get(name, {}).get(PUBLISHED_AS.get(policy, ""))
    return {
        "plain": [low, value, high],
        "paper": [PAPER_FACTOR * low, PAPER_FACTOR * value, PAPER_FACTOR * high],
        "instance": where,
        "instances": len(outcomes),
        "published": printed,
    }


def _claim(results: Sequence[Result], policies: Sequence[str], name: str) -> list[dict[str, Any]]:
    """For every tracking policy and baseline, over the instances that both were played on: which worst rate is larger."""
    verdicts = []
    for ours in TRACKING:
        for policy in policies:
            if ours not in policies or policy in TRACKING:
                continue
            mine, theirs = _outcomes(results, ours, name), _outcomes(results, policy, name)
            shared = {o.instance for o in mine} & {o.instance for o in theirs}
            first = worst_rate([o for o in mine if o.instance in shared])
            second = worst_rate([o for o in theirs if o.instance in shared])
            if first.low > second.high:
                verdict = "above"
            elif first.high < second.low:
                verdict = "below"
            else:
                verdict = "higher, intervals overlap" if first.value > second.value else "lower, intervals overlap"
            verdicts.append({"policy": ours, "baseline": policy, "verdict": verdict, "instances": len(shared)})
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
        figures.draw(_interval_figure(rows, title, "rate, larger is better"), folder / f"worst-{name.lower()}")


def _interval_figure(rows: Sequence[figures.Row], title: str, axis: str) -> figures.Row:
    """A point with its interval for each policy; rows have policy, low, value and high."""
    order = [row["policy"] for row in rows]
    colour: figures.Row = {"field": "policy", "legend": None}
    colour |= {"scale": {"domain": order, "range": [figures.style_of(name)[0] for name in order]}}
    shared: figures.Row = {"y": {"field": "policy", "type": "nominal", "sort": order, "title": None}, "color": colour}
    rule = {
        "mark": {"type": "rule", "strokeWidth": 3},
        "encoding": {**shared, "x": {"field": "low", "type": "quantitative", "title": axis}, "x2": {"field": "high"}},
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {**shared, "x": {"field": "value", "type": "quantitative"}},
    }
    return {"title": title, "width": 520, "data": {"values": list(rows)}, "layer": [rule, point]}
