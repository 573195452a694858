"""The service of the demo: a process of its own, on a port that nobody else has, with its database and log in one folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

START_SECONDS = 120
_STOP_SECONDS = 30


class Trouble(Exception):  # noqa: N818 - its text is a sentence for people
    """The demo cannot go on."""


def require_free(port: int) -> None:
    """Raise if somebody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as taken:
            raise Trouble(
                f"Port {port} cannot be used ({taken.strerror}), and the demo talks to no service that it did not start. "
                f"`make demo DEMO_PORT=…` takes another port."
            ) from taken


class DemoService:
    """Started with the object, stopped by `stop`."""

    def __init__(self, folder: Path, port: int) -> None:
        self._log = folder / "service.log"
        # Whatever is set for a service of yours (its database above all) is not for this one.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BESTARM_")}
        environment["BESTARM_DATABASE_URL"] = f"sqlite:///{folder / 'demo.db'}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "service", "serve", "--port", str(port)], env=environment, stdout=log, stderr=log
            )

    def _lines(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)

    def require(self) -> None:
        """Raise if it has ended, with its last words."""
        code = self._process.poll()
        if code is not None:
            last = (self._lines() or ["none"])[-1].strip()
            raise Trouble(f"The service has ended (exit code {code}). Its last words: {last}")

    def address(self) -> str:
        """Where it listens, by its own word once it has the port: whoever answers there is this service and no other."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.require()
            for line in self._lines():
                if line.startswith("{") and line.endswith("\n") and (entry := json.loads(line))["event"] == "serving":
                    return str(entry["address"])
            time.sleep(0.1)
        raise Trouble("The service did not start in time.")

    def stop(self) -> None:
        """As an operator would; after half a minute without asking."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
