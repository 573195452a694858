"""The command `python -m studies`: what it writes, and how it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from studies.__main__ import app

ROOT = Path(__file__).parents[2]


@pytest.mark.study
def test_short_studies_end_in_a_page(tmp_path: Path) -> None:
    """`short-horizon` with a handful of runs, then the page with its table and verdicts."""
    result = CliRunner().invoke(app, ["short-horizon", "--runs", "4", "--out", str(tmp_path), "--seed", "5"])
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "short-horizon" / "summary.json").read_text())
    assert list(summary["tables"]) == ["1", "3", "8", "10"]
    assert (tmp_path / "short-horizon" / "8.svg").exists()
    page = CliRunner().invoke(app, ["page", "--from", str(tmp_path), "--to", str(tmp_path / "page.md")])
    assert page.exit_code == 0, page.output
    text = (tmp_path / "page.md").read_text()
    assert "T = 1,000" in text
    assert "CR-A (theta0 = 0.2" in text
    assert "SR, Simple Tracking, Almost Tracking err less than CR-A, CR-C" in text


def test_a_page_of_nothing_is_refused() -> None:
    """No traceback, exit code 2."""
    result = CliRunner().invoke(app, ["page", "--from", "nowhere"])
    assert result.exit_code == 2
    assert "no results" in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_there_is_a_command_for_every_study() -> None:
    """One each, and one for all."""
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for study in ("minimax-rates", "real-world", "budgets", "short-horizon", "sharpness", "all"):
        assert study in result.output


@pytest.mark.process
def test_it_runs_as_a_program_of_a_checkout() -> None:
    """`python -m studies` says how it is called."""
    command = [sys.executable, "-m", "studies", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "python -m studies" in done.stdout
