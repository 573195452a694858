"""What a study leaves in its folder: the tables, what they say, the figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from service.simulation.result_files import write_tables
from studies import guarded
from studies.summaries import (
    error_curves,
    guarded_figure,
    guarded_summary,
    paper_claims,
    published_counts,
    sharpness_comparisons,
    sharpness_figures,
    worst_rates,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from service.simulation.session import Result

SUMMARY = "summary.json"


def write_summary(study: str, folder: Path, results: Sequence[Result], settings: dict[str, Any]) -> None:
    """results.csv, curves.csv, results.json, summary.json and the figures of one study."""
    write_tables(folder, results, settings, every_checkpoint=study in ("sharpness", "guarded"))
    counts = [result.runs for result in results if result.cell.measure == "error"]
    summary: dict[str, Any] = {"settings": settings, "played": {"fewest": min(counts), "most": max(counts)}}
    if study == "minimax-rates":
        summary |= worst_rates.summarise(results)
        worst_rates.draw_figures(folder, summary)
        error_curves.draw_grid(folder, results, "curves", "Probability of error over time, ten instances")
    elif study == "budgets":
        summary |= published_counts.summarise(results)
        published_counts.draw_figure(folder, results)
    elif study == "sharpness":
        summary |= sharpness_comparisons.summarise(results)
        sharpness_figures.draw_figures(folder, results, summary)
    elif study == "guarded":
        summary |= guarded_summary.summarise(results, guarded.BASE, guarded.CANDIDATES, guarded.UNGUARDED)
        guarded_figure.draw_figure(folder, summary)
    else:
        summary |= error_curves.summarise(results)
        summary["claims"] = paper_claims.judge(study, results)
        error_curves.draw_each(folder, results)
    (folder / SUMMARY).write_text(json.dumps(summary, indent=1, allow_nan=True) + "\n")
