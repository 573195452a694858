"""Workers are killed, stopped, blocked and broken for real, and come back; the others never stop for it."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.processes import children_of, is_running, wait_until
from testing.server import NO_CERTIFICATES, Server, free_port

pytestmark = pytest.mark.process
_HANG_SECONDS = 1.5
# Enough to wait for all that there are, fewer than another process takes.
_FEW_FILES = 9


class SmallService:
    """The application of tests/supervision/small_service.py, served by two workers."""

    def __init__(self, folder: Path) -> None:
        self.port, self.folder, self.log = free_port(), folder, folder / "log"
        self._read_before = 0
        command = [sys.executable, "-m", "tests.supervision.small_service", str(self.port), str(_HANG_SECONDS), str(folder)]
        # What coverage has to say when a process that it follows is stopped stands on standard error, beside the log.
        with self.log.open("wb") as log, (folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=log, stderr=errors, start_new_session=True)

    def ask(self, path: str = "/") -> int:
        """The process that answers."""
        return int(httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=30, verify=NO_CERTIFICATES).text)

    def entries(self, event: str) -> list[dict[str, Any]]:
        """What was logged of this kind in this test; every line is JSON."""
        lines = [json.loads(line) for line in self.log.read_text()[self._read_before :].splitlines()]
        return [line for line in lines if line["event"] == event]

    def begun(self) -> list[int]:
        """Every worker that began to serve, in order."""
        return [int(pid) for pid in re.findall(r"Started server process \[(\d+)\]", self.log.read_text())]

    def serving(self) -> set[int]:
        """The workers that serve, or are about to."""
        return {pid for pid in self.begun() if is_running(pid)}

    def spares(self) -> set[int]:
        """Those that stand by."""
        waited = [int(pid) for pid in re.findall(r'"worker stands by", "pid": (\d+)', self.log.read_text())]
        return {pid for pid in waited if is_running(pid)}.difference(self.begun())

    def open_files(self) -> int:
        """How many the supervisor has."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    def begin_test(self) -> None:
        """Be as it is after a while, and forget what was."""
        self.wait_until_whole()
        self._read_before = len(self.log.read_text())

    def wait_until_whole(self) -> None:
        """Until two serve and one stands by."""
        wait_until(lambda: len(self.serving()) == 2 and len(self.spares()) == 1, "two workers and a spare")

    def send_somewhere(self, path: str) -> socket.socket:
        """A request that is not waited for."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
        return connection

    def is_listening(self) -> bool:
        """Does anybody let us in, be it to wait?"""
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self) -> None:
        """End everything that is left."""
        for pid in children_of(self.process.pid):
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallService]:
    """A small service that survives whatever is done to its workers."""
    service = SmallService(tmp_path_factory.mktemp("shared"))
    yield service
    service.end()


@pytest.fixture
def small(shared: SmallService) -> SmallService:
    """The same, with two workers and a spare."""
    shared.begin_test()
    return shared


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[SmallService]:
    """One of a test's own."""
    service = SmallService(tmp_path)
    service.wait_until_whole()
    yield service
    service.end()


def test_a_killed_worker_is_replaced_by_the_one_that_stands_by(small: SmallService) -> None:
    """No process has to be started first; the other worker is the same all the time, and another one stands by after that."""
    victim, other = sorted(small.serving())
    (spare,) = small.spares()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: small.serving() == {other, spare}, "the spare serves")
    wait_until(lambda: small.ask() == spare, "and answers")
    small.wait_until_whole()
    (died,) = small.entries("worker died")
    assert (died["pid"], died["exit_code"], died["stage"]) == (victim, -signal.SIGKILL, "serving")


@pytest.mark.parametrize("where", ["spin", "sleep"])
def test_a_worker_whose_event_loop_is_kept_is_replaced(small: SmallService, where: str) -> None:
    """Be it busy or asleep: other threads of it could still run, its loop does not come round. The log says where it is."""
    before = small.serving()
    with small.send_somewhere(f"/{where}"):
        wait_until(lambda: small.entries("worker hangs"), "it is noticed")
        wait_until(lambda: len(small.serving()) == 2 and small.serving() != before, "it is replaced")
    (hung,) = small.entries("worker hangs")
    assert hung["pid"] in before
    assert re.search(rf'small_service.py", line \d+ in {where}\b', hung["stack"])
    assert len(before & small.serving()) == 1


def test_a_stopped_worker_is_replaced_while_the_other_answers(small: SmallService) -> None:
    """A process that is stopped takes no request, and holds those it has; it is killed, because it cannot end by itself."""
    victim, other = sorted(small.serving())
    os.kill(victim, signal.SIGSTOP)
    answered = set()
    while not small.entries("worker died"):
        answered.add(small.ask())
    assert other in answered
    wait_until(lambda: len(small.serving()) == 2, "it is replaced")
    assert other in small.serving()
    assert victim not in small.serving()


def test_a_spare_that_dies_or_is_stopped_is_replaced(small: SmallService) -> None:
    """And nobody who serves notices."""
    serving = small.serving()
    for number in (signal.SIGKILL, signal.SIGSTOP):
        spares = small.spares()
        for spare in spares:
            os.kill(spare, number)
        wait_until(lambda: not spares & small.spares(), "it is gone")  # noqa: B023 - called at once
        small.wait_until_whole()
    assert small.serving() == serving


def test_a_worker_that_dies_again_and_again_comes_with_growing_pauses(small: SmallService) -> None:
    """The others serve meanwhile, nobody gives up, and it is back when its trouble is over."""
    _, other = sorted(small.serving())
    (small.folder / "broken").touch()
    for pid in small.serving() - {other}:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(small.entries("worker died")) >= 5, "it is tried again and again")
    died = [entry for entry in small.entries("worker died") if entry["stage"] != "standby"]
    pauses = [entry["replaced_in_seconds"] for entry in died]
    assert pauses[-3:] == sorted(pauses[-3:])
    assert pauses[-1] > pauses[-3]
    assert small.ask() == other
    (small.folder / "broken").unlink()
    small.wait_until_whole()
    assert other in small.serving()


def test_a_worker_for_which_there_is_no_room_comes_when_there_is(small: SmallService) -> None:
    """Not one file more may be opened: the others serve, are watched and can be replaced; a hangup leaves them as they are."""
    spares, (victim, other), files = small.spares(), sorted(small.serving()), small.open_files()
    most = resource.prlimit(small.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(small.process.pid, resource.RLIMIT_NOFILE, (_FEW_FILES, most[1]))
    try:
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: small.serving() == spares | {other}, "the spare serves")
        wait_until(lambda: small.entries("worker cannot start"), "there is no room for another")
        os.kill(small.process.pid, signal.SIGHUP)
        wait_until(lambda: small.entries("signal"), "it is heard")
        stopped = min(spares)
        os.kill(stopped, signal.SIGSTOP)
        wait_until(lambda: small.entries("worker hangs"), "those that serve are watched all the time")
        wait_until(lambda: len(small.entries("worker cannot start")) >= 4, "it is tried again")
        assert small.ask() == other
    finally:
        resource.prlimit(small.process.pid, resource.RLIMIT_NOFILE, most)
    small.wait_until_whole()
    assert other in small.serving()
    wait_until(lambda: small.open_files() == files, "nothing of those that did not start is left open")
    os.kill(other, signal.SIGKILL)
    wait_until(lambda: other not in small.serving(), "it is gone")
    small.wait_until_whole()
    (spare,) = small.spares()
    os.kill(spare, signal.SIGKILL)
    wait_until(lambda: spare in {entry["pid"] for entry in small.entries("worker died")}, "it is missed")
    (pause,) = [entry["replaced_in_seconds"] for entry in small.entries("worker died") if entry["pid"] == spare]
    assert pause == 0.0, "it does not wait for what its predecessors met"


def test_a_hangup_replaces_every_worker_while_somebody_serves(small: SmallService) -> None:
    """Each goes when its successor serves; whoever is connected to it just then connects again, and is answered."""
    before = small.serving() | small.spares()
    os.kill(small.process.pid, signal.SIGHUP)
    while small.serving() & before or small.spares() & before:
        try:
            small.ask()
        except (httpx.RemoteProtocolError, httpx.ReadError):
            small.ask()
    small.wait_until_whole()
    assert small.entries("worker died") == []


def test_a_hangup_with_something_broken_keeps_the_old_workers(small: SmallService) -> None:
    """Until what is new can start there is no reason to end what is old."""
    before = small.serving()
    (small.folder / "broken").touch()
    os.kill(small.process.pid, signal.SIGHUP)
    wait_until(lambda: small.entries("new worker died, the old one stays"), "it is given up")
    assert small.serving() == before
    assert small.ask() in before


def test_who_was_stopped_together_is_not_to_blame(small: SmallService) -> None:
    """A machine that stands still for longer than a worker may be silent wakes up with the same workers."""
    before = small.serving() | small.spares()
    os.killpg(small.process.pid, signal.SIGSTOP)
    time.sleep(3 * _HANG_SECONDS)
    os.killpg(small.process.pid, signal.SIGCONT)
    time.sleep(2 * _HANG_SECONDS)
    assert small.entries("worker hangs") == []
    assert small.serving() | small.spares() == before


def test_workers_end_with_their_supervisor(mortal: SmallService) -> None:
    """One that is killed leaves nobody behind, and its port to the next."""
    left = children_of(mortal.process.pid)
    assert len(left) == 3
    mortal.process.kill()
    wait_until(lambda: not any(map(is_running, left)), "they are gone")
    with socket.create_server(("127.0.0.1", mortal.port)):
        pass


def test_a_stop_waits_for_answers_and_a_second_ctrl_c_does_not(mortal: SmallService) -> None:
    """Both are a success."""
    with mortal.send_somewhere("/endless") as connection:
        assert connection.recv(12) == b"HTTP/1.1 200"
        mortal.process.send_signal(signal.SIGINT)
        wait_until(lambda: mortal.entries("Waiting for connections to close. (CTRL+C to force quit)"), "it waits")
        assert mortal.process.poll() is None
        mortal.process.send_signal(signal.SIGINT)
        assert mortal.process.wait(30) == 0


def test_nobody_is_let_in_once_those_that_serve_have_let_go_of_the_port(mortal: SmallService) -> None:
    """A spare that is slow to end, here stopped altogether, would hold it open and answer nobody; what is begun is finished."""
    (spare,) = mortal.spares()
    with mortal.send_somewhere("/endless") as waiting:
        assert waiting.recv(1024)
        os.kill(spare, signal.SIGSTOP)
        mortal.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not mortal.is_listening(), "the port is closed")
        wait_until(lambda: len(mortal.serving()) == 1, "the worker that is still answering goes on")
    assert mortal.process.wait(60) == 0


def test_workers_that_never_could_start_end_it(tmp_path: Path) -> None:
    """With the exit code of a failure, so that whoever started it knows."""
    (tmp_path / "broken").touch()
    service = SmallService(tmp_path)
    try:
        assert service.process.wait(60) == 3
        assert service.entries("workers cannot start")
    finally:
        service.end()


def test_a_killed_worker_s_lanes_end_with_it(sqlite_databases: NewDatabase) -> None:
    """Its processes for expensive requests are not left behind, and its place is taken."""
    with Server(sqlite_databases(), workers=2, measured=True, BESTARM_LOG_LEVEL="info") as server:
        with JsonClient(server.url) as client:
            client.create("any", arms=arms(2))
            assert client.send("GET", "/v1/experiments/any/history").status == 200
        workers = [pid for pid in children_of(server.process.pid) if children_of(pid)]
        (worker,) = workers
        lanes = children_of(worker)
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not any(map(is_running, lanes)), "the lanes are gone")
        wait_until(lambda: "worker died" in server.log.read_text(), "it is noticed")
        with JsonClient(server.url) as client:
            assert client.send("GET", "/v1/experiments/any").status == 200
        assert server.stop() == 0
