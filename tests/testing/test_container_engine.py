"""The engine of the container tests, where it cannot be had."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from testing.containers.debian import NoContainers
from testing.containers.engine import wait_for_network

pytestmark = pytest.mark.process


def test_a_network_that_ends_is_said_in_a_sentence(tmp_path: Path) -> None:
    """With the last words of what should have made it; nobody waits for a device that cannot come any more."""
    log = tmp_path / "log"
    log.write_text("slirp4netns: open(/dev/net/tun): No such device\n")
    with subprocess.Popen(["false"]) as network, pytest.raises(NoContainers, match=r"gets no network: .*No such device"):  # noqa: S607
        wait_for_network(network, str(os.getpid()), log)
