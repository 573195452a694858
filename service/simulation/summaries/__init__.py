"""What a study's counts say: tables, comparisons with the published numbers, figures. One file a kind of study."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from service.simulation.reports import write_tables
from service.simulation.summaries import claims, curves, published, rates, sharpness, sharpness_figures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from service.simulation.session import Result

SUMMARY = "summary.json"


def write_summary(study: str, folder: Path, results: Sequence[Result], settings: dict[str, Any]) -> None:
    """results.csv, curves.csv, results.json, summary.json and the figures of one study."""
    write_tables(folder, results, settings, every_checkpoint=study == "sharpness")
    counts = [result.runs for result in results if result.cell.measure == "error"]
    summary: dict[str, Any] = {"settings": settings, "played": {"fewest": min(counts), "most": max(counts)}}
    if study == "minimax-rates":
        summary |= rates.summarise(results)
        rates.draw_figures(folder, summary)
        curves.draw_grid(folder, results, "curves", "Probability of error over time, ten instances")
    elif study == "budgets":
        summary |= published.summarise(results)
        published.draw_figure(folder, results)
    elif study == "sharpness":
        summary |= sharpness.summarise(results)
        sharpness_figures.draw_figures(folder, results, summary)
    else:
        summary |= curves.summarise(results)
        summary["claims"] = claims.judge(study, results)
        curves.draw_each(folder, results)
    (folder / SUMMARY).write_text(json.dumps(summary, indent=1, allow_nan=True) + "\n")
