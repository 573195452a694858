"""The service as it runs in production: its own processes, real HTTP, killed for real."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx

# A service may close a connection that was idle for some seconds: a client that would use it just then finds it gone.
LIMITS = httpx.Limits(max_connections=100, keepalive_expiry=1)
ADMIN_KEY = "of-the-tests-and-nobody-else"
# The services speak plain HTTP. Left to itself every new client reads the certificates of the world, which takes 20 ms.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_START_SECONDS = 180
# It gives its requests 20 seconds, and a busy machine may take as long again.
_STOP_SECONDS = 60
# Enough for the stacks of a service's processes to reach its log.
_STACK_SECONDS = 2
_PORTS = range(20_000, 30_000)


def free_port() -> int:
    """A port that was free a moment ago, below those that the system gives to clients: none of them can take it meanwhile."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"No port of {_PORTS} is free.")


def bearer(key: str | None) -> dict[str, str]:
    """The header that sends a key."""
    return {} if key is None else {"Authorization": f"Bearer {key}"}


class Server:
    """`bestarm serve` with its workers, on a port of its own. If it is `measured`, coverage follows it where it is measured."""

    def __init__(
        self,
        database_url: str,
        *,
        workers: int = 1,
        port: int | None = None,
        program: Sequence[str | Path] = (sys.executable, "-m", "service"),
        cwd: Path | None = None,
        measured: bool = False,
        key: str | None = None,
        **environment: str,
    ) -> None:
        self.database_url = database_url
        self.key = key
        """Its BESTARM_ADMIN_KEY, which its clients send."""
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = Path(tempfile.mkdtemp(prefix="bestarm-")) / "log"
        settings = {"BESTARM_DATABASE_URL": database_url, "BESTARM_LOG_LEVEL": "warning", "PYTHONFAULTHANDLER": "1"}
        settings |= {} if key is None else {"BESTARM_ADMIN_KEY": key}
        command = [*program, "serve", "--port", str(self.port), "--workers", str(workers)]
        # Followed by coverage a service takes half as much time again: a few that many tests share are enough.
        inherited = {name: value for name, value in os.environ.items() if measured or not name.startswith("COVERAGE_")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=inherited | settings | environment, cwd=cwd, stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._wait_until_ready()
        except BaseException:  # whoever is interrupted has nobody yet to stop
            self.kill()
            raise

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        with httpx.Client(timeout=5, verify=NO_CERTIFICATES) as client:
            while time.monotonic() < deadline and self.process.poll() is None:
                try:
                    if client.get(f"{self.url}/readyz").status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"The service did not start:\n{self.log.read_text()}")

    def client(self) -> httpx.Client:
        """An HTTP client for it."""
        return httpx.Client(base_url=self.url, timeout=60, limits=LIMITS, verify=NO_CERTIFICATES, headers=bearer(self.key))

    def kill(self) -> None:
        """Kill all its processes at once: no goodbye, nothing flushed."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait(30)

    def stop(self) -> int:
        """Ask it to stop, as an operator would; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired as late:
            os.killpg(self.process.pid, signal.SIGABRT)  # each of its processes says where it is, and ends
            time.sleep(_STACK_SECONDS)
            raise RuntimeError(f"The service did not stop:\n{self.log.read_text()}") from late
        finally:
            self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.log.parent)
