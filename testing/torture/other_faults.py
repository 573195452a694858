"""What happens to a SQLite file, to the clock, and to experiments while they are asked."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from email.utils import parsedate_to_datetime
from pathlib import Path
from random import Random

import httpx

from testing.json_client import JsonClient
from testing.server import NO_CERTIFICATES
from testing.torture.fault import Fault
from testing.torture.stage import Stage

_MINUTE, _HOUR = 60, 3_600
# The library that moves the clock looks once a second how far.
_NOTICED_SECONDS = 2.5


def lock_file(stage: Stage, _dice: Random, hold: float) -> None:
    """Another process has the file to itself."""
    with closing(sqlite3.connect(stage.database_url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)) as rows:
        rows.execute("BEGIN EXCLUSIVE")
        time.sleep(hold)
        rows.execute("ROLLBACK")


def fill_disk(stage: Stage, _dice: Random, hold: float) -> None:
    """Leave the file no room, and then some again."""
    assert stage.disk is not None
    stage.disk.fill()
    time.sleep(hold)
    stage.disk.make_room()


def make_read_only(stage: Stage, dice: Random, hold: float) -> bool:
    """Nobody may write to the file, root included, and a worker has to open it anew; then everybody may again.

    Whoever has it open goes on writing: a file system is not remounted while one of its files is open to be written.
    """
    file = stage.database_url.removeprefix("sqlite:///")
    workers = stage.workers_with_spares()
    if not workers:
        return False
    _set_immutable(file, "+i")
    try:
        os.kill(dice.choice(workers), signal.SIGKILL)
        time.sleep(hold)
        return not _is_writable(file)
    finally:
        _set_immutable(file, "-i")


def _set_immutable(file: str, change: str) -> None:
    subprocess.run(["chattr", change, file], check=True)  # noqa: S607 - of the system


def _is_writable(file: str) -> bool:
    """Whoever opens it from now on may write; who had it open before may anyway."""
    try:
        Path(file).open("r+b").close()
    except PermissionError:
        return False
    return True


def step_clock(stage: Stage, dice: Random, hold: float) -> bool:
    """Back or forth, in one of the services: the dates of its answers tell whether it came there."""
    assert stage.clock is not None
    step = dice.choice([-1, 1]) * dice.randint(_MINUTE, _HOUR)
    stage.clock.write_text(f"{step:+d}")
    time.sleep(max(hold, _NOTICED_SECONDS))
    try:
        date = httpx.get(f"{stage.urls[-1]}/healthz", timeout=10, verify=NO_CERTIFICATES).headers["date"]
    finally:
        stage.clock.write_text("+0")
    return abs(parsedate_to_datetime(date).timestamp() - time.time() - step) < _MINUTE / 2


def change_experiments(stage: Stage, dice: Random, _hold: float) -> None:
    """Arms and lives of the experiments that are asked just then, by batches, too."""
    with JsonClient(dice.choice(stage.urls)) as client:
        for name in ("ledger", "planned"):
            path = f"/v1/experiments/{stage.prefix}{name}"
            for method, where, body in (
                ("PATCH", "/arms/b", {"status": "disabled"}),
                ("POST", "/arms", {"key": f"new-{time.monotonic_ns()}"}),
                ("PATCH", "/arms/b", {"status": "active", "value": dice.random()}),
                ("PATCH", "/arms/a", {"min_share": dice.random() / 4}),
                ("POST", "/pause", None),
                ("POST", "/resume", None),
                ("POST", "/conclude", {"arm": "a"}),
                ("POST", "/reopen", None),
                ("POST", "/resume", None),
            ):
                client.send(method, path + where, body)
                time.sleep(dice.random() / 50)


def sqlite_faults(stage: Stage) -> list[Fault]:
    """Those of a file."""
    return [
        Fault("file locked by another process", stage.engine, lock_file, 10.0),
        Fault("read-only file", stage.engine, make_read_only, 5.0, at_least=3, until_whole=True),
        *([Fault("disk full", stage.engine, fill_disk, 5.0)] if stage.disk is not None else []),
    ]


def traffic_faults(stage: Stage) -> list[Fault]:
    """Those of either database."""
    return [
        Fault("arms and lives changed", stage.engine, change_experiments, stops_experiments=True),
        *([Fault("clock stepped", stage.engine, step_clock, 3.0)] if stage.clock is not None else []),
    ]
