"""Several processes of clients at once, and what they have done when they are called back."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from testing.json_client import JsonClient
from testing.torture.calls import Call, read_calls
from testing.torture.workloads import EXPERIMENTS, WORKLOADS

_ROOT = Path(__file__).parents[2]
_END_SECONDS = 180.0
# What is killed starts again before clients get more done: otherwise most of a campaign is waiting for that.
_CLIENTS = ("nice", "-n", "10", sys.executable, "-m", "testing.torture.client_process")


class Crowd:
    """A process for each workload, with some threads in each."""

    def __init__(self, urls: Sequence[str], *, threads: int = 3, prefix: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bestarm-calls-")
        self.folder = Path(self._folder.name)
        self._processes = [
            subprocess.Popen(
                [*_CLIENTS, workload, str(threads), self.folder, prefix, *urls],
                stdin=subprocess.PIPE,
                cwd=_ROOT,
            )
            for workload in WORKLOADS
        ]

    def wait_until_busy(self, calls: int = 100) -> None:
        """Until so many calls were answered."""
        deadline = time.monotonic() + _END_SECONDS
        while sum(file.read_bytes().count(b"\n") for file in self.folder.glob("*.calls")) < calls:
            assert time.monotonic() < deadline, "no clients"
            time.sleep(0.05)

    def call_back(self) -> list[Call]:
        """Let everybody finish what they are at; all calls."""
        for process in self._processes:
            if process.stdin is not None and not process.stdin.closed:
                process.stdin.close()
        for process in self._processes:
            assert process.wait(_END_SECONDS) == 0
        return read_calls(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
            process.kill()
            process.wait()
        self._folder.cleanup()


def create_experiments(url: str, prefix: str = "") -> None:
    """What the workloads ask."""
    with JsonClient(url) as client:
        for key, settings in EXPERIMENTS.items():
            client.create(prefix + key, **settings)
