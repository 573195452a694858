"""The figure of the study of guarded weights: whose errors the chosen policy makes how many times, by kind of rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.simulation import figures
from service.simulation.kernels.catalogue import contender

if TYPE_CHECKING:
    from pathlib import Path

_REWARDS = ("Gaussian rewards", "binary rewards", "bounded rewards")
_TICKS = [0.05, 0.1, 0.2, 0.5, 1, 2]


def draw_figure(folder: Path, summary: dict[str, Any]) -> None:
    """A bar a baseline and kind of rewards: left of the line the chosen policy errs less."""
    rows = [
        {"against": contender(other).title, "rewards": group, "ratio": groups[group]["ratio"], "from": 1.0}
        for other, groups in summary["judgement"].items()
        for group in _REWARDS
        if group in groups
    ]
    if not rows:
        return
    scale = {"type": "log", "domain": [_TICKS[0], _TICKS[-1]], "clamp": True}
    x: dict[str, Any] = {"field": "ratio", "type": "quantitative", "scale": scale, "axis": {"values": _TICKS, "format": "~g"}}
    y = {"field": "against", "type": "nominal", "title": None, "sort": {"field": "ratio", "order": "ascending"}}
    bars = {
        "data": {"values": rows},
        "mark": {"type": "bar", "height": 12, "color": figures.style_of("Simple Tracking")[0]},
        "encoding": {"x": {**x, "title": "errors of the default / errors of the other"}, "x2": {"field": "from"}, "y": y},
    }
    line = {"mark": {"type": "rule", "color": "#333333"}, "encoding": {"x": {"datum": 1.0, "type": "quantitative"}}}
    panels = [
        {
            "title": {"text": group, "fontSize": 12},
            "width": 260,
            "layer": [{**bars, "transform": [{"filter": {"field": "rewards", "equal": group}}]}, line],
        }
        for group in _REWARDS
        if any(row["rewards"] == group for row in rows)
    ]
    title = f"{contender(summary['chosen']).title} against the others: a bar to the left means fewer errors at the same traffic"
    figures.draw({"title": title, "columns": 2, "concat": panels}, folder / "against")
