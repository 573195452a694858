"""Workers, and whole services, that are killed or stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing
from random import Random

from testing.memory import processes_of
from testing.processes import is_running, wait_until
from testing.torture.fault import Fault
from testing.torture.stage import Stage


def _require_whole_file(stage: Stage) -> None:
    """Where there is a file, it opens and is consistent just now."""
    if stage.engine == "sqlite":
        with closing(sqlite3.connect(stage.database_url.removeprefix("sqlite:///"), timeout=30)) as rows:
            assert rows.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def kill_worker(stage: Stage, dice: Random, _hold: float) -> bool:
    """Kill one worker; its supervisor replaces it."""
    workers = stage.workers_with_spares()
    if not workers:
        return False
    victim = dice.choice(workers)
    was_there = _signal(victim, signal.SIGKILL)
    wait_until(lambda: not is_running(victim), "it is dead")
    _require_whole_file(stage)
    return was_there


def kill_service(stage: Stage, dice: Random, _hold: float) -> None:
    """Kill every process of a service, and start it again."""
    service = dice.choice(stage.services)
    service.server.kill()
    _require_whole_file(stage)
    service.start_again()


def kill_supervisor(stage: Stage, dice: Random, _hold: float) -> None:
    """Kill the first process of a service alone: its workers end by themselves, and leave the port."""
    service = dice.choice(stage.services)
    left = processes_of(service.server.process.pid)[1:]
    service.server.process.kill()
    service.server.process.wait()
    _require_whole_file(stage)
    deadline = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in left):  # noqa: PTH110 - of the system
        assert time.monotonic() < deadline, "workers outlive their supervisor"
        time.sleep(0.01)
    service.start_again()


def stop_worker(stage: Stage, dice: Random, hold: float) -> bool:
    """Stop a worker for a while, if it is not replaced before."""
    workers = stage.workers_with_spares()
    return bool(workers) and _stopped([dice.choice(workers)], hold)


def stop_service(stage: Stage, dice: Random, hold: float) -> None:
    """Stop every process of a service for a while."""
    _stopped(processes_of(dice.choice(stage.services).server.process.pid), hold)


def stop_postgres(stage: Stage, _dice: Random, hold: float) -> None:
    """Stop every process of the database for a while."""
    assert stage.postgres is not None
    _stopped(processes_of(stage.postgres.pid), hold)


def _stopped(pids: list[int], hold: float) -> bool:
    stopped = [pid for pid in pids if _signal(pid, signal.SIGSTOP)]
    if stopped:
        time.sleep(hold)
    for pid in stopped:
        _signal(pid, signal.SIGCONT)
    return bool(stopped)


def _signal(pid: int, number: signal.Signals) -> bool:
    """Whether it was still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def faults(engine: str) -> list[Fault]:
    """Those of services, on either database."""
    return [
        Fault("kill -9 of a worker", engine, kill_worker, weight=6, at_least=40, pause_seconds=0.1, until_whole=True),
        Fault("kill -9 of a service", engine, kill_service, weight=6, at_least=20, pause_seconds=0.1, from_beginning=True),
        Fault("kill -9 of a supervisor", engine, kill_supervisor, at_least=3, pause_seconds=0.1, from_beginning=True),
        Fault("SIGSTOP of a worker", engine, stop_worker, hold_seconds=30, until_whole=True),
        Fault("SIGSTOP of a service", engine, stop_service, hold_seconds=30),
    ]
