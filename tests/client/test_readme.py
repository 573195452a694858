"""From nothing to the first recommendation, by the lines of the README alone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from testing.installation import ROOT, build, install_client, run
from testing.server import Server
from tests.docs.texts import blocks_of, text_of

_PRINTED = "http://127.0.0.1:8000"
_SECTION = text_of("README.md").partition("## From Python")[2].partition("\n## ")[0]


def test_the_readme_needs_few_lines() -> None:
    """One command and fewer than fifteen lines of code."""
    (_, command), (_, code) = blocks_of(_SECTION)
    assert command == ".venv/bin/pip install ./client\n"
    assert len([line for line in (command + code).splitlines() if line]) < 15


@pytest.mark.process
def test_the_lines_of_the_readme_lead_to_a_recommendation(tmp_path: Path) -> None:
    """In an empty environment, away from here, in less than five minutes; and once more."""
    begun = time.monotonic()
    _, (_, code) = blocks_of(_SECTION)
    python = install_client(build(tmp_path / "dist", only_wheel=True, source=ROOT / "client"), tmp_path / "venv")
    with Server(f"sqlite:///{tmp_path}/bestarm.db") as server:
        script = "import random; random.seed(1)\n" + code.replace(_PRINTED, server.url)
        for _ in range(2):
            done = run(python, "-c", script, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
            assert "green leads grey" in done.stdout or "green is" in done.stdout, done.stdout
            time.sleep(1)  # the next key
    assert time.monotonic() - begun < 300
    assert run(python, "-c", "import numpy", cwd=tmp_path).returncode == 1, "The client brings what it does not need."
