"""Debian's Prometheus as a process, with the configuration and the rules of deploy/prometheus/."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import httpx

from testing.reverse_proxy import replaced
from testing.server import NO_CERTIFICATES, free_port

CONFIGURATION = Path(__file__).parents[1] / "deploy/prometheus"
_START_SECONDS = 60


class Prometheus:
    """Scrapes one target every second."""

    def __init__(self, folder: Path, target: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        shutil.copytree(CONFIGURATION, folder, dirs_exist_ok=True)
        settings = folder / "prometheus.yml"
        settings.write_text(replaced(settings.read_text(), {"service:9464": target, "15s": "1s"}))
        command = [
            "prometheus",
            f"--config.file={settings}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
        ]
        self._client = httpx.Client(base_url=self.url, timeout=30, verify=NO_CERTIFICATES)
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_ready():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self.close()
                raise RuntimeError((folder / "log").read_text())
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            return self._client.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def get(self, path: str, **parameters: str) -> Any:  # noqa: ANN401 - any JSON
        """What its API says."""
        answer = self._client.get(f"/api/v1/{path}", params=parameters).json()
        if answer["status"] != "success":
            raise RuntimeError(f"{parameters}: {answer['error']}")
        return answer["data"]

    def value(self, expression: str) -> float:
        """The one number that an expression has now; 0 where it has none yet."""
        result = self.get("query", query=expression)["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def close(self) -> None:
        """End the connection and the server."""
        self._client.close()
        self._process.terminate()
        self._process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
