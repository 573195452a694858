"""A picture of the measured rates: one bar per cell, its range as a line, on a logarithmic scale."""

from __future__ import annotations

import statistics
from pathlib import Path

import vl_convert


def draw(measured: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Write the picture as SVG."""
    rows = []
    for name, runs in measured.items():
        rates = [run["per_second"] for run in runs]
        kind = (
            "floor or yardstick" if any(word in name for word in ("ASGI", "route", "pgbench", "naive", "insert")) else "bestarm"
        )
        rows.append({"cell": name, "rate": statistics.median(rates), "low": min(rates), "high": max(rates), "kind": kind})
    labelled = {"field": "cell", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 360}}
    scale = {"type": "log", "domainMin": 10}
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 520,
        "data": {"values": rows},
        "encoding": {"y": labelled},
        "layer": [
            {
                "mark": "bar",
                "encoding": {
                    "x": {"field": "rate", "type": "quantitative", "scale": scale, "title": "requests per second, median"},
                    "x2": {"datum": 10},
                    "color": {"field": "kind", "type": "nominal", "title": None},
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": {"field": "low", "type": "quantitative", "scale": scale}, "x2": {"field": "high"}},
            },
        ],
    }
    path.write_text(vl_convert.vegalite_to_svg(spec))
