"""The sharpness study end to end with few runs: its files, and the page made from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.simulation.environments import of_means
from service.simulation.session import Session
from studies import sharpness
from studies.pages.results_page import write_page
from studies.summaries.summary_files import write_summary


@pytest.mark.study
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
