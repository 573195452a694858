"""The studies end to end with few runs: their files, and the page made from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from service.simulation.commands import register
from service.simulation.environments import of_means
from service.simulation.page import write_page
from service.simulation.session import Session
from service.simulation.studies import sharpness
from service.simulation.studies.horizons import find_horizon
from service.simulation.studies.structures import all_structures
from service.simulation.summaries import write_summary


def test_short_studies_end_in_a_page(tmp_path: Path) -> None:
    """`short-horizon` with a handful of runs, then the page with its table and verdicts."""
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["reproduce", "short-horizon", "--runs", "4", "--out", str(tmp_path), "--seed", "5"])
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "short-horizon" / "summary.json").read_text())
    assert list(summary["tables"]) == ["1", "3", "8", "10"]
    assert (tmp_path / "short-horizon" / "8.svg").exists()
    page = CliRunner().invoke(app, ["reproduce", "page", "--from", str(tmp_path), "--to", str(tmp_path / "page.md")])
    assert page.exit_code == 0, page.output
    text = (tmp_path / "page.md").read_text()
    assert "T = 1,000" in text
    assert "CR-A (theta0 = 0.2" in text
    assert "SR, Simple Tracking, Almost Tracking err less than CR-A, CR-C" in text


def test_the_horizon_is_the_first_multiple_of_100_with_the_wanted_error(tmp_path: Path) -> None:
    """Easy arms are told apart soon, hard ones later."""
    with Session(tmp_path, runs=500, seed=1, quiet=True) as session:
        easy = find_horizon(session, of_means([1.0, 0.0]))
        hard = find_horizon(session, of_means([0.2, 0.0]))
    assert easy % 100 == hard % 100 == 0
    assert easy < hard < 1000


def test_sharpness_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One small environment through the whole study: budgets, all contenders, comparisons, starvation, page."""
    small = of_means([0.0, 1.0, 0.4], label="gaussian K=3 shape=1")
    monkeypatch.setattr(sharpness, "environments", lambda: [small])
    with Session(tmp_path / "sharpness", runs=200, seed=1, quiet=True) as session:
        results = sharpness.run(session)
    settings = {"study": "sharpness", "seed": 1, "runs": 200, "command": "test"}
    write_summary("sharpness", tmp_path / "sharpness", results, settings)
    summary = json.loads((tmp_path / "sharpness" / "summary.json").read_text())
    groups = {row["group"] for row in summary["against_one"]}
    assert "random, gaussian, K = 3" in groups
    assert {row["policy"] for row in summary["starved"]} == set(sharpness.STARVED_SHARPNESS)
    write_page(tmp_path, tmp_path / "page.md")
    assert "Errors relative to s = 1" in (tmp_path / "page.md").read_text()


def test_structures_are_fixed_and_have_one_best_arm() -> None:
    """Four sizes, three shapes, two kinds; the same ones every time."""
    first, second = all_structures(), all_structures()
    assert first == second
    assert len({world.label for world in first}) == 24
