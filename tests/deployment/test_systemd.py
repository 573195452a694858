"""The unit for systemd: what systemd itself says of it."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

import pytest

from service import serving
from service.settings import Settings
from tests.docs.texts import ROOT, text_of

pytestmark = pytest.mark.process
_UNIT = ROOT / "deploy/systemd/bestarm.service"


def _analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, check=False)  # noqa: S607


def test_its_exposure_is_what_the_page_says() -> None:
    """Out of ten, by `systemd-analyze security`; what the page promises may only fall."""
    said = _analyze("security", "--offline=true", _UNIT)
    assert said.returncode == 0, said.stderr
    found = re.search(r"Overall exposure level for bestarm.service: ([\d.]+)", said.stdout)
    promised = re.search(r"`systemd-analyze security` rates it ([\d.]+) of 10", text_of("docs/deployment.md"))
    assert found is not None
    assert promised is not None
    assert float(found[1]) <= float(promised[1]) < 2


def test_systemd_knows_every_line(tmp_path: Path) -> None:
    """With its programs where they are said to be."""
    program = tmp_path / "bestarm"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "bestarm.service"
    unit.write_text(_UNIT.read_text().replace("/opt/bestarm/bin/bestarm", str(program)))
    said = _analyze("verify", "--man=no", unit)
    assert "bestarm.service" not in said.stdout + said.stderr
    assert said.returncode == 0, said.stderr


def test_it_may_finish_its_requests_and_its_settings_exist() -> None:
    """Killed later than its own grace; what it sets are settings of the service."""
    text = _UNIT.read_text()
    stop = re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) > serving.GRACE_SECONDS
    named = re.findall(r"^Environment=(BESTARM_\w+)=", text, re.MULTILINE)
    assert named
    assert {name.removeprefix("BESTARM_").lower() for name in named} <= set(Settings.model_fields)
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    assert parser["Service"]["ExecStart"].endswith("bestarm serve")
