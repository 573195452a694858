"""What happens to a SQLite file, to the clock, and to experiments while they are asked."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from random import Random

from testing.json_client import JsonClient
from testing.torture.fault import Fault
from testing.torture.stage import Stage

_HOUR = 3_600


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


def step_clock(stage: Stage, dice: Random, hold: float) -> None:
    """Back or forth, in one of the services."""
    assert stage.clock is not None
    stage.clock.write_text(f"{dice.choice([-1, 1]) * dice.randint(1, _HOUR):+d}")
    time.sleep(hold)
    stage.clock.write_text("+0")


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
        *([Fault("disk full", stage.engine, fill_disk, 5.0)] if stage.disk is not None else []),
    ]


def traffic_faults(stage: Stage) -> list[Fault]:
    """Those of either database."""
    return [
        Fault("arms and lives changed", stage.engine, change_experiments),
        *([Fault("clock stepped", stage.engine, step_clock, 3.0)] if stage.clock is not None else []),
    ]
