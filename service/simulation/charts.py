"""Figures as Vega-Lite specifications, drawn to SVG and PNG without a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Row = dict[str, Any]
_PNG_SCALE = 1.0


def error_curves(rows: Sequence[Row], title: str) -> Row:
    """PoE over draws on a logarithmic scale, a line a policy; rows have policy, draws and poe (above 0)."""
    return {
        "title": title,
        "width": 560,
        "height": 340,
        "data": {"values": list(rows)},
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "draws", "type": "quantitative", "title": "draws"},
            "y": {
                "field": "poe",
                "type": "quantitative",
                "scale": {"type": "log"},
                "title": "probability of error",
            },
            "color": {
                "field": "policy",
                "type": "nominal",
                "title": None,
                "sort": None,
                "scale": {"scheme": "category20"},
            },
        },
    }


def intervals(rows: Sequence[Row], title: str, axis: str) -> Row:
    """A point with its interval for each policy; rows have policy, low, value and high."""
    order = [row["policy"] for row in rows]
    y = {"field": "policy", "type": "nominal", "sort": order, "title": None}
    shared = {"title": title, "width": 480}
    rule = {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {
            "y": y,
            "x": {"field": "low", "type": "quantitative", "title": axis},
            "x2": {"field": "high"},
        },
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 50},
        "encoding": {"y": y, "x": {"field": "value", "type": "quantitative"}},
    }
    return {**shared, "data": {"values": list(rows)}, "layer": [rule, point]}


def draw(spec: Row, path: Path) -> list[Path]:
    """Write the figure beside `path` as .svg and .png."""
    import vl_convert  # noqa: PLC0415 - an extra, and only figures need it

    text = json.dumps(spec)
    svg, png = path.with_suffix(".svg"), path.with_suffix(".png")
    svg.write_text(vl_convert.vegalite_to_svg(text))
    png.write_bytes(vl_convert.vegalite_to_png(text, scale=_PNG_SCALE))
    return [svg, png]
