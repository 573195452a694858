"""The image by itself, with the command that docs/deployment.md has for it."""

from __future__ import annotations

import re
import socket
import time
from threading import Thread

import pytest

from testing.containers.compose_project import ComposeProject
from testing.json_client import JsonClient, arms
from tests.docs.texts import text_of

pytestmark = [pytest.mark.containers, pytest.mark.process]
_BODY = b'{"unit": "slow"}'
# Longer than Docker waits by itself before it kills.
_SLOW_SECONDS = 12


def test_a_stop_waits_for_a_request_that_is_still_being_sent(built: ComposeProject) -> None:
    """Longer than Docker would by itself; then it ends as a success, with everything on its volume."""
    engine = built.engine
    found = re.search(r"^docker run (.+)$", text_of("docs/deployment.md"), re.MULTILINE)
    assert found is not None
    command = found[1].replace("127.0.0.1:8000:", "127.0.0.1:8010:").replace(" bestarm serve", " bestarm:local serve").split()
    engine.run("docker", "run", "--detach", "--name", "alone", *command)
    port = engine.relay(8010)
    with JsonClient(f"http://127.0.0.1:{port}") as wire:
        _wait_until_ready(wire)
        wire.create("alone", arms=arms(2))
    with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
        head = b"POST /v1/experiments/alone/assignments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow.sendall(head + b"Content-Length: %d\r\n\r\n" % len(_BODY) + _BODY[:5])
        time.sleep(1)
        stopping = Thread(target=engine.run, args=("docker", "stop", "alone"))
        stopping.start()
        time.sleep(_SLOW_SECONDS)
        slow.sendall(_BODY[5:])
        assert slow.recv(65_536).startswith(b"HTTP/1.1 201 ")
    stopping.join()
    assert engine.run("docker", "inspect", "alone", "--format", "{{.State.ExitCode}}").stdout.strip() == "0"
    engine.run("docker", "start", "alone")
    with JsonClient(f"http://127.0.0.1:{engine.relay(8010)}") as wire:
        _wait_until_ready(wire)
        assert wire.send("GET", "/v1/experiments/alone/recommendation").body["draws"] == 1
    engine.run("docker", "rm", "--force", "--volumes", "alone")


def _wait_until_ready(wire: JsonClient) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            if wire.send("GET", "/readyz").status == 200:
                return
        except OSError:
            wire.close()
        assert time.monotonic() < deadline
        time.sleep(0.2)
