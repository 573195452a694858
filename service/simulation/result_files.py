"""What every study leaves behind: results.csv (one row a cell and budget), results.json (with the settings), figures."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

from service.simulation import figures
from service.simulation.complexity import h1, h2, h3
from service.simulation.error_intervals import wilson
from service.simulation.kernels.catalogue import contender

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from service.simulation.runner import Cell
    from service.simulation.session import Result

COLUMNS = ("instance", "policy", "budget", "runs", "errors", "draws", "poe", "low", "high", "measure", "seed")


def rows_of(result: Result, seed: int) -> Iterator[dict[str, Any]]:
    """A row for every checkpoint; `budget` is what the policy was told or would have been, `draws` where it was asked."""
    for draws, errors in zip(result.cell.checkpoints, result.errors, strict=True):
        low, value, high = wilson(errors, result.runs)
        yield {
            "instance": result.cell.environment.label,
            "policy": result.cell.policy,
            "budget": result.cell.budget,
            "runs": result.runs,
            "errors": errors,
            "draws": draws,
            "poe": round(value, 6),
            "low": round(low, 6),
            "high": round(high, 6),
            "measure": result.cell.measure,
            "seed": seed,
        }


def write_tables(folder: Path, results: Sequence[Result], settings: dict[str, Any], *, every_checkpoint: bool = False) -> None:
    """results.csv at the budget, curves.csv at every checkpoint, results.json with settings and environments.

    Where the checkpoints are budgets themselves (`every_checkpoint`) results.csv has them all.
    """
    seed = int(settings["seed"])
    rows = [row for result in results for row in rows_of(result, seed)]
    if every_checkpoint:
        final = [{**row, "budget": row["draws"]} for row in rows]
    else:
        final = [row for row in rows if row["draws"] == row["budget"]]
        _write_csv(folder / "curves.csv", rows)
    _write_csv(folder / "results.csv", final)
    environments = {result.cell.environment.label: _described(result.cell) for result in results}
    text = json.dumps({"settings": settings, "environments": environments, "results": final}, indent=1)
    (folder / "results.json").write_text(text + "\n")


def _described(cell: Cell) -> dict[str, Any]:
    """The environment with its complexities."""
    world = cell.environment
    return {
        "arms": world.arms,
        "kind": world.kind,
        "delay": world.delay,
        "geometric": world.geometric,
        "loss": world.loss,
        "H1": h1(world.means),
        "H2": h2(world.means),
        "H3": h3(world.means),
        "means": world.means,
    }


def _write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_curves(folder: Path, results: Sequence[Result], name: str, title: str) -> None:
    """The figure of PoE over draws for the results of one environment; points without an error have no logarithm."""
    rows = [
        {"policy": contender(row["policy"]).title, "draws": row["draws"], "poe": row["poe"]}
        for result in results
        for row in rows_of(result, 0)
        if row["errors"] > 0
    ]
    if rows:
        figures.draw(figures.error_curves(rows, title), folder / name)
