"""Figures as Vega-Lite specifications, drawn to SVG and PNG without a browser.

A policy looks the same in every figure: the tracking policies thick, a family of baselines in one colour, its second
member dashed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Row = dict[str, Any]
_PNG_SCALE = 1.0
_WHOLE, _DASHED, _DOTTED = [1, 0], [5, 3], [1, 3]
_THICK, _THIN = 3.0, 1.5
_INK, _GRID = "#333333", "#e6e6e6"
_TICKS = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]

# By the beginning of a title, the longer ones first: colour, dash, width.
_STYLES: dict[str, tuple[str, list[int], float]] = {
    "Simple Tracking (s": ("#08519c", _DASHED, _THICK),
    "Simple Tracking": ("#08519c", _WHOLE, _THICK),
    "Almost Tracking (realised)": ("#31a354", _DASHED, _THICK),
    "Almost Tracking": ("#31a354", _WHOLE, _THICK),
    "SR": ("#8c564b", _WHOLE, _THIN),
    "SH": ("#8c564b", _DASHED, _THIN),
    "CR-A": ("#d62728", _WHOLE, _THIN),
    "CR-C": ("#d62728", _DASHED, _THIN),
    "DSR": ("#969696", _WHOLE, _THIN),
    "DSH": ("#969696", _DASHED, _THIN),
    "TS-TC": ("#7b3294", _WHOLE, _THIN),
    "EB-TC-eps0": ("#ff7f0e", _WHOLE, _THIN),
    "EB-TC": ("#ff7f0e", _DASHED, _THIN),
    "Uniform": ("#000000", _DOTTED, _THIN),
    "Pooled Allocation": ("#17becf", _WHOLE, _THIN),
}
_OTHER = ("#bcbd22", _WHOLE, _THIN)
_CONFIG: Row = {
    "background": "white",
    "view": {"stroke": None},
    "axis": {"gridColor": _GRID, "domainColor": _INK, "tickColor": _INK, "labelColor": _INK, "titleColor": _INK},
    "title": {"color": _INK, "anchor": "start", "fontSize": 14},
    "legend": {"labelColor": _INK, "symbolSize": 300, "labelLimit": 240},
}


def style_of(title: str) -> tuple[str, list[int], float]:
    """Colour, dashes and width of a policy's line."""
    return next((style for name, style in _STYLES.items() if title.startswith(name)), _OTHER)


def styled(titles: Sequence[str], columns: int | None = None) -> Row:
    """The encodings that give every policy its line, with one legend for all three."""
    styles = [style_of(title) for title in titles]
    legend: Row = {"title": None, "symbolType": "stroke"}
    if columns is not None:
        legend |= {"orient": "bottom", "columns": columns}
    shared: Row = {"field": "policy", "type": "nominal", "legend": legend}
    return {
        "color": {**shared, "scale": {"domain": list(titles), "range": [style[0] for style in styles]}},
        "strokeDash": {**shared, "scale": {"domain": list(titles), "range": [style[1] for style in styles]}},
        "strokeWidth": {**shared, "scale": {"type": "ordinal", "domain": list(titles), "range": [style[2] for style in styles]}},
    }


def error_curves(rows: Sequence[Row], title: str, titles: Sequence[str] | None = None, columns: int | None = None) -> Row:
    """PoE over draws on a logarithmic scale, a line a policy; rows have policy, draws and poe (above 0).

    Several panels with one legend are given the same `titles`.
    """
    named = titles or list(dict.fromkeys(row["policy"] for row in rows))
    y: Row = {"field": "poe", "type": "quantitative", "scale": {"type": "log"}, "title": "probability of error"}
    return {
        "title": title,
        "width": 600,
        "height": 380,
        "data": {"values": list(rows)},
        "mark": {"type": "line", "clip": True},
        "encoding": {
            "x": {"field": "draws", "type": "quantitative", "title": "draws", "axis": {"tickCount": 5, "grid": False}},
            "y": {**y, "axis": {"values": _TICKS, "format": "~g"}},
            **styled(named, columns),
        },
    }


def draw(spec: Row, path: Path) -> list[Path]:
    """Write the figure beside `path` as .svg and .png."""
    import vl_convert  # noqa: PLC0415 - of the extra `sim`, and only figures need it

    text = json.dumps({**spec, "config": _CONFIG})
    svg, png = path.with_suffix(".svg"), path.with_suffix(".png")
    svg.write_text(vl_convert.vegalite_to_svg(text))
    png.write_bytes(vl_convert.vegalite_to_png(text, scale=_PNG_SCALE))
    return [svg, png]
