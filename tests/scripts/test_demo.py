"""`make demo` as a newcomer runs it: a process with a service below it."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from testing.server import free_port
from tests.docs.texts import text_of

pytestmark = pytest.mark.process
_PATIENCE = 120


class Demo:
    """The demo, with all that it says."""

    def __init__(self, output: Path, port: int, **environment: str) -> None:
        self.port, self._output = port, output
        with output.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scripts.demo", "--port", str(port)],
                env=os.environ | environment,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """Everything so far."""
        return self._output.read_text()

    def wait_for(self, words: str) -> re.Match[str]:
        """Until it has said so."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if found := re.search(words, self.said):
                return found
            time.sleep(0.05)
        pytest.fail(f"Not a word of {words!r}:\n{self.said}")

    def interrupt(self) -> int:
        """Ctrl-C goes to the whole group of a terminal; the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(_PATIENCE)

    def end(self) -> None:
        """Whatever became of it."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(_PATIENCE)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """A demo beside the settings of somebody's own service."""
    own = {"BESTARM_DATABASE_URL": f"sqlite:///{tmp_path}/own.db", "BESTARM_PORT": "1", "BESTARM_HOST": "192.0.2.1"}
    started = Demo(tmp_path / "said", free_port(), **own)
    yield started
    started.end()


def test_the_demo_has_its_own_service_and_leaves_nothing(demo: Demo, tmp_path: Path) -> None:
    """Three experiments with traffic; nobody's own settings are used; a database that is locked for a while is waited for."""
    folder = Path(demo.wait_for(r"log are in (\S+)")[1])
    demo.wait_for(f"Open http://127.0.0.1:{demo.port} and watch")
    listed = httpx.get(f"http://127.0.0.1:{demo.port}/v1/experiments").json()
    assert {one["key"] for one in listed["experiments"]} == {"checkout-button", "signup-headline", "search-ranking"}
    with closing(sqlite3.connect(folder / "demo.db", isolation_level=None)) as locked:
        locked.execute("BEGIN EXCLUSIVE")
        demo.wait_for(r"does not answer as it should \(.+\)")
        locked.execute("ROLLBACK")
        demo.wait_for("answers again")
    assert demo.interrupt() == 0
    assert "Traceback" not in demo.said
    assert "nothing is left" in demo.said
    assert (folder.exists(), (tmp_path / "own.db").exists()) == (False, False)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", demo.port)) != 0


def test_a_service_that_dies_is_named_with_its_log(demo: Demo) -> None:
    """Not a stack trace: a sentence, the log's place, and an exit code."""
    demo.wait_for("Open http")
    found = subprocess.run(["pgrep", "-P", str(demo.process.pid)], capture_output=True, text=True, check=True)  # noqa: S607 - of the system
    os.kill(int(found.stdout), signal.SIGKILL)
    assert demo.process.wait(_PATIENCE) == 1
    assert "The service has ended (exit code -9)" in demo.said
    log = Path(demo.wait_for(r"log of the demo's service is kept: (\S+)")[1])
    assert '"event": "serving"' in log.read_text()
    assert "Traceback" not in demo.said


def test_ctrl_c_at_once_is_no_trouble(demo: Demo) -> None:
    """Also while the service starts."""
    demo.wait_for("log are in")
    assert demo.interrupt() == 0
    assert "Traceback" not in demo.said


def test_the_demo_talks_to_no_service_of_others(tmp_path: Path) -> None:
    """On a port that somebody has it leaves with a sentence, and has sent nothing there."""
    heard: list[str] = []

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET  # noqa: N815 - the library's name

    with HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        Thread(target=stranger.serve_forever, daemon=True).start()
        refused = Demo(tmp_path / "said", stranger.server_port)
        code = refused.process.wait(_PATIENCE)
        stranger.shutdown()
    assert (code, heard) == (1, [])
    assert f"Port {refused.port} cannot be used" in refused.said
    assert "DEMO_PORT" in refused.said
    assert "Traceback" not in refused.said


def test_its_port_is_not_that_of_the_service() -> None:
    """Both may run, and the pages say where the demo is."""
    (port,) = re.findall(r"^DEMO_PORT \?= (\d+)$", text_of("make/dashboard.mk"), re.MULTILINE)
    assert port != "8000"
    assert f"http://127.0.0.1:{port}" in text_of("docs/dashboard.md")
    assert f"http://127.0.0.1:{port}" in text_of("README.md")
