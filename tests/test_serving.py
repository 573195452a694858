"""`bestarm serve` as processes: where it listens, how it stops, and what it logs meanwhile."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from service import __version__
from service.serving import address_of, bound_sockets
from service.storage.migrate import head
from testing.json_client import JsonClient, arms
from testing.processes import wait_until
from testing.server import Server, free_port

pytestmark = pytest.mark.process


def _entries(server: Server) -> list[dict[str, Any]]:
    """Everything that the service wrote, on whichever output: each line must be JSON."""
    return [json.loads(line) for line in server.log.read_text().splitlines()]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_line_is_json_from_start_to_stop(workers: int, tmp_path: Path) -> None:
    """Ours and uvicorn's: when it starts, is asked to stop, has stopped; and a stop that was asked for is a success."""
    with Server(f"sqlite:///{tmp_path}/bestarm.db", workers=workers, BESTARM_LOG_LEVEL="info") as server:
        wait_until(lambda: server.log.read_text().count("Application startup complete.") == workers, "all workers serve")
        assert server.stop() == 0
        entries = _entries(server)
    assert all({"timestamp", "level", "event"} <= set(entry) for entry in entries)
    first, last = entries[0], entries[-1]
    assert (first["event"], first["version"], first["workers"]) == ("serving", __version__, workers)
    assert (first["address"], first["database"]) == (server.url, f"sqlite:///{tmp_path}/bestarm.db")
    shared = [first[name] for name in ("migration", "database_migration", "database_for_releases_from")]
    assert shared[:2] == [head(), head()]
    assert shared[2] <= head()
    assert (last["event"], last["exit_code"]) == ("stopped", 0)
    events = [entry["event"] for entry in entries]
    assert events.count("Application startup complete.") == events.count("Application shutdown complete.") == workers
    assert {entry.get("logger") for entry in entries} == {None, "uvicorn.error"}


def test_ctrl_c_is_a_stop_like_any_other(tmp_path: Path) -> None:
    """With exit code 0."""
    with Server(f"sqlite:///{tmp_path}/bestarm.db") as server:
        os.killpg(server.process.pid, signal.SIGINT)
        assert server.process.wait(60) == 0
        assert server.log.read_text() == "", "nothing of this is a warning"


def test_a_failure_is_a_line_with_the_name_of_its_request(tmp_path: Path) -> None:
    """Its stack trace is inside the line, whoever writes it; the caller has the same name and nothing else."""
    with Server(f"sqlite:///{tmp_path}/bestarm.db") as server, JsonClient(server.url) as wire:
        wire.create("broken", arms=arms(2))
        with closing(sqlite3.connect(tmp_path / "bestarm.db")) as rows, rows:
            rows.execute("UPDATE experiments SET policy = '{'")
        failed = httpx.get(f"{server.url}/v1/experiments/broken", headers={"X-Request-Id": "look-for-me"})
        assert (failed.status_code, failed.json()["request_id"]) == (500, "look-for-me")
        assert server.stop() == 0
        entries = _entries(server)
    (ours,) = [entry for entry in entries if entry["event"] == "unexpected"]
    assert (ours["level"], ours["request_id"], ours["path"]) == ("error", "look-for-me", "/v1/experiments/broken")
    assert "Traceback" in ours["exception"]


def test_a_higher_level_leaves_lower_lines_out(tmp_path: Path) -> None:
    """`BESTARM_LOG_LEVEL=error` also silences our own warnings."""
    quiet: dict[str, list[str]] = {}
    for level in ("warning", "error"):
        file = tmp_path / f"{level}.db"
        with Server(f"sqlite:///{file}", BESTARM_LOG_LEVEL=level, BESTARM_SWEEP_SECONDS="0.05") as server:
            with closing(sqlite3.connect(file)) as rows, rows:
                rows.execute("ALTER TABLE experiments RENAME TO elsewhere")
            httpx.get(f"{server.url}/v1/experiments/any")
            assert server.stop() == 0
            quiet[level] = [entry["level"] for entry in _entries(server)]
    assert "warning" in quiet["warning"]
    assert "warning" not in quiet["error"]


def test_a_taken_port_is_named_before_the_database_is_touched(tmp_path: Path) -> None:
    """Whoever has the port may use the same file."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = subprocess.run(
            [sys.executable, "-m", "service", "serve", "--port", port],
            env=os.environ | {"BESTARM_DATABASE_URL": f"sqlite:///{tmp_path}/bestarm.db"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (refused.returncode, refused.stdout) == (1, "")
    said = (
        f"Cannot listen on 127.0.0.1:{port}: Address already in use. Is the service running already? `--port` chooses another.\n"
    )
    assert refused.stderr == said, "one line, however long"
    assert not (tmp_path / "bestarm.db").exists()


def test_a_name_is_served_on_all_its_addresses() -> None:
    """`localhost` is IPv4 and, where there is one, IPv6, on the same port, be it one that the system chose."""
    sockets = bound_sockets("localhost", 0)
    try:
        names = {one.getsockname()[0] for one in sockets}
        ports = {one.getsockname()[1] for one in sockets}
        assert {"127.0.0.1"} <= names <= {"127.0.0.1", "::1"}
        assert len(ports) == 1
        assert address_of("localhost", sockets) == f"http://localhost:{ports.pop()}"
    finally:
        for one in sockets:
            one.close()


def test_a_host_of_another_machine_cannot_be_listened_on() -> None:
    """It has no address here."""
    with pytest.raises(OSError, match="Cannot assign"):
        bound_sockets("192.0.2.1", free_port())


def _idle_connections(server: Server, number: int) -> list[http.client.HTTPConnection]:
    """Connections on which a request was answered, and none is on its way."""
    opened = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(number)]
    for connection in opened:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    return opened


def _stop_listening(server: Server) -> None:
    """Ask it to stop, and wait until nobody can connect any more."""
    server.process.send_signal(signal.SIGTERM)
    while True:
        try:
            socket.create_connection(("127.0.0.1", server.port)).close()
        except ConnectionRefusedError:
            return


@pytest.mark.parametrize("workers", [1, 2])
def test_open_connections_may_send_a_last_request_when_it_stops(workers: int, tmp_path: Path) -> None:
    """It is answered, says that it was the last, and is stored; a new connection is refused, so a proxy takes another service."""
    url = f"sqlite:///{tmp_path}/bestarm.db"
    with Server(url, workers=workers, BESTARM_DRAIN_SECONDS="15") as server, JsonClient(server.url) as wire:
        wire.create("drained", arms=arms(2))
        asking, looking = _idle_connections(server, 2)
        wire.close()
        _stop_listening(server)
        asking.request("POST", "/v1/experiments/drained/assignments", "{}", {"content-type": "application/json"})
        looking.request("GET", "/v1/experiments/drained")
        answers = [connection.getresponse() for connection in (asking, looking)]
        assert [(answer.status, answer.headers["connection"]) for answer in answers] == [(201, "close"), (200, "close")]
        drawn = json.loads(answers[0].read())["id"]
        assert server.process.wait(60) == 0, "nobody is left to wait for"
    with Server(url) as again, JsonClient(again.url) as wire:
        assert wire.send("GET", f"/v1/experiments/drained/assignments/{drawn}").status == 200


@pytest.mark.parametrize("seconds", ["0", "1"])
def test_a_connection_that_sends_nothing_more_does_not_hold_a_stop_up(seconds: str, tmp_path: Path) -> None:
    """It is closed, at once or when its time is over."""
    with Server(f"sqlite:///{tmp_path}/bestarm.db", BESTARM_DRAIN_SECONDS=seconds) as server:
        (idle,) = _idle_connections(server, 1)
        assert server.stop() == 0
        assert idle.sock is not None
        assert idle.sock.recv(1) == b""
        idle.close()
