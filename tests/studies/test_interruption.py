"""Ctrl-C in the middle of a study, as a terminal sends it: to the program and to its workers at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.simulation.finished_blocks import FILE_NAME
from studies.__main__ import app

pytestmark = [pytest.mark.process, pytest.mark.study]
ROOT = Path(__file__).parents[2]
STUDY = ("short-horizon", "--runs", "250", "--seed", "5")
CELLS = 52
# Started in the background a shell would have it ignore Ctrl-C; as a foreground program it does not.
PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from studies.__main__ import app; app()"


def parts(folder: Path) -> int:
    """How many blocks of the study are finished."""
    blocks = folder / "short-horizon" / FILE_NAME
    return blocks.read_text().count("\n") if blocks.exists() else 0


def interrupted(folder: Path) -> tuple[int, str]:
    """Start the study with two workers, press Ctrl-C after some blocks: the exit code and what it said."""
    command = [sys.executable, "-c", PROGRAM, *STUDY, "--jobs", "2", "--out", str(folder)]
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=both, text=True, start_new_session=True) as process:
        patience = time.monotonic() + 120.0
        while parts(folder) < 3 and process.poll() is None and time.monotonic() < patience:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=120.0)
    return process.returncode, said


def finished(folder: Path) -> str:
    """Let the study run to its end in this process: its results."""
    result = CliRunner().invoke(app, [*STUDY, "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return (folder / "short-horizon" / "results.csv").read_text()


def test_ctrl_c_keeps_what_is_finished_and_the_study_goes_on(tmp_path: Path) -> None:
    """Exit code 130 and a sentence; a report of the finished part; in the end the results of a run without interruption."""
    code, said = interrupted(tmp_path / "stopped")
    assert code == 130, said
    assert "What is finished is kept" in said
    assert "Traceback" not in said
    kept = parts(tmp_path / "stopped")
    assert 3 <= kept < CELLS
    assert len((tmp_path / "stopped" / "short-horizon" / "results.csv").read_text().splitlines()) == kept + 1
    assert finished(tmp_path / "stopped") == finished(tmp_path / "whole")
    assert parts(tmp_path / "stopped") == CELLS
