"""The figures of the sharpness study: the ratio of errors to s = 1, a panel a kind of environment or level of error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from service.simulation import figures
from studies.error_comparisons import CountTable, counts_of, ratio_of
from studies.sharpness import SIMPLE
from studies.summaries.sharpness_comparisons import grouped
from studies.summaries.worst_rates_by_level import draw_levels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from service.simulation.session import Result

_COLUMNS = 5
_LIMITS = [0.1, 10.0]
_TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10]


def draw_figures(folder: Path, results: Sequence[Result], summary: dict[str, Any]) -> None:
    """The ratios, and the worst rates by level once all ten instances are played."""
    counts = counts_of(results)
    arms = {r.cell.environment.label: r.cell.environment.arms for r in results}
    panels = [_panel(counts, group, places) for group, places in grouped(counts, arms).items()]
    title = "Simple Tracking: errors relative to s = 1 (a dot an environment and budget, the line their mean)"
    figures.draw({"title": title, "columns": _COLUMNS, "concat": panels}, folder / "ratios")
    if summary["by_level"]:
        draw_levels(folder, summary["by_level"])


def _panel(counts: CountTable, group: str, places: list[tuple[str, int]]) -> dict[str, Any]:
    """One group: every ratio as a dot, their geometric mean as a line, and the level of s = 1."""
    base, *sharper = SIMPLE
    dots = [
        {"s": float(name.partition(":s=")[2]), "ratio": ratio_of(counts[place][name], counts[place][base])}
        for name in sharper
        for place in places
        if name in counts[place] and base in counts[place]
    ]
    means = [{"s": 1.0, "ratio": 1.0}]
    for s in sorted({row["s"] for row in dots}):
        logs = [math.log(row["ratio"]) for row in dots if row["s"] == s]
        means.append({"s": s, "ratio": math.exp(sum(logs) / len(logs))})
    x = {"field": "s", "type": "quantitative", "title": "s", "scale": {"domain": [1, 2]}, "axis": {"tickCount": 5, "grid": False}}
    axis = {"values": _TICKS, "format": "~g"}
    scale = {"type": "log", "domain": _LIMITS, "clamp": True}
    y = {"field": "ratio", "type": "quantitative", "title": None, "scale": scale, "axis": axis}
    ink = figures.style_of("Simple Tracking")[0]
    layers = [
        {"data": {"values": dots}, "mark": {"type": "point", "filled": True, "size": 18, "opacity": 0.35, "color": "#7f7f7f"}},
        {
            "data": {"values": means},
            "mark": {"type": "line", "color": ink, "strokeWidth": 2.5, "point": {"color": ink, "size": 40}},
        },
    ]
    line = {"data": {"values": [{"ratio": 1.0}]}, "mark": {"type": "rule", "color": "#333333"}, "encoding": {"y": y}}
    drawn = [{**layer, "encoding": {"x": x, "y": y}} for layer in layers]
    return {"title": {"text": group, "fontSize": 12}, "width": 170, "height": 150, "layer": [line, *drawn]}
