"""Error over time: the final errors as a table, the curves as figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.simulation import figures
from service.simulation.error_intervals import wilson
from service.simulation.kernels.catalogue import contender
from service.simulation.result_files import write_curves

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from service.simulation.session import Result


def by_instance(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The results of each environment."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.cell.environment.label, []).append(result)
    return found


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """Final errors with intervals, best first."""
    tables = {}
    for label, group in by_instance(results).items():
        rows: list[dict[str, Any]] = [
            {"policy": r.cell.policy, "errors": r.final, "runs": r.runs, "poe": list(wilson(r.final, r.runs))} for r in group
        ]
        tables[label] = {"budget": group[0].cell.budget, "rows": sorted(rows, key=lambda row: row["errors"])}
    return {"tables": tables}


def draw_each(folder: Path, results: Sequence[Result]) -> None:
    """A figure for every environment."""
    for label, group in by_instance(results).items():
        named = f"instance {label}" if label.isdigit() else label.replace("_", " ")
        title = f"{named}, {group[0].cell.environment.arms} arms, {group[0].runs:,} runs"
        write_curves(folder, group, label, title)


def draw_grid(folder: Path, results: Sequence[Result], name: str, title: str) -> None:
    """One figure with a small panel for every environment and one legend for all."""
    titles = list(dict.fromkeys(contender(r.cell.policy).title for r in results))
    panels = []
    for label, group in by_instance(results).items():
        rows: list[dict[str, Any]] = [
            {"policy": contender(r.cell.policy).title, "draws": draws, "poe": errors / r.runs}
            for r in group
            for draws, errors in zip(r.cell.checkpoints, r.errors, strict=True)
            if errors > 0
        ]
        panel = figures.error_curves(rows, f"instance {label}", titles, columns=7)
        panel["encoding"]["y"]["scale"] = {"type": "log", "domain": [0.005, 1.0]}
        panel["encoding"]["x"]["axis"]["tickCount"] = 3
        panels.append({**panel, "width": 190, "height": 170})
    figures.draw({"title": title, "columns": 5, "concat": panels}, folder / name)
