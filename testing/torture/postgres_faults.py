"""What happens to a PostgreSQL and to the way to it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from typing import TypeVar

import asyncpg

from testing.postgres import Postgres
from testing.tcp_proxy import COMMIT_CUTS, CUTS, CommitCut, Cut, TcpProxy
from testing.torture.fault import Fault
from testing.torture.process_faults import stop_postgres
from testing.torture.stage import Stage

_Kind = TypeVar("_Kind", Cut, CommitCut)
_DATABASE = "torture"
_OURS = f"FROM pg_stat_activity WHERE datname = '{_DATABASE}' AND application_name <> 'psql' AND backend_type = 'client backend'"
_TABLES = ("experiments", "arms", "assignments", "events", "replies")


def _postgres(stage: Stage) -> Postgres:
    assert stage.postgres is not None
    return stage.postgres


def _proxy(stage: Stage) -> TcpProxy:
    assert stage.proxy is not None
    return stage.proxy


def kill_postgres(stage: Stage, _dice: Random, _hold: float) -> None:
    """All of it, and start it again."""
    _postgres(stage).kill()
    _postgres(stage).start()


def kill_backend(stage: Stage, dice: Random, _hold: float) -> bool:
    """One session of a service: PostgreSQL ends all others and recovers."""
    pids = _postgres(stage).sql(f"SELECT pid {_OURS}").split()
    if not pids:
        return False
    try:
        os.kill(int(dice.choice(pids)), signal.SIGKILL)
    except ProcessLookupError:
        return False
    _postgres(stage).start()
    return True


def restart_postgres(stage: Stage, dice: Random, _hold: float) -> None:
    """In order, or at once."""
    _postgres(stage).stop(dice.choice([signal.SIGINT, signal.SIGQUIT]))
    _postgres(stage).start()


def drop_connections(stage: Stage, _dice: Random, _hold: float) -> bool:
    """By an administrator."""
    return int(_postgres(stage).sql(f"SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) {_OURS}")) > 0


def cut(kind: Cut, stage: Stage, _dice: Random, hold: float) -> bool:
    """Whatever the service says next, if it says anything."""
    proxy = _proxy(stage)
    was_met = _was_met(proxy.cuts, kind)
    if kind == "silence":
        time.sleep(hold)
        proxy.end_silence()
    return was_met


def cut_at_commit(kind: CommitCut, stage: Stage, _dice: Random, _hold: float) -> bool:
    """The next transaction of the service that has written something: what became of it, it cannot know."""
    return _was_met(_proxy(stage).commit_cuts, kind)


def _was_met(cuts: deque[_Kind], kind: _Kind) -> bool:
    """Did the service say something in time to which that happened?"""
    cuts.append(kind)
    deadline = time.monotonic() + 5
    while cuts and time.monotonic() < deadline:
        time.sleep(0.002)
    was_met = not cuts
    cuts.clear()
    return was_met


def cut_all(stage: Stage, _dice: Random, _hold: float) -> bool:
    """All connections of a service at once."""
    return _proxy(stage).cut_all() > 0


@contextmanager
def _session(postgres: Postgres, *statements: str) -> Iterator[None]:
    """A psql session that has run these and stays."""
    session = subprocess.Popen(
        [postgres.binaries / "psql", "-h", postgres.folder, "-U", "bestarm", "-d", _DATABASE, "-Atq"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write(";\n".join((*statements, "SELECT 'done'")) + ";\n")
    session.stdin.flush()
    while (said := session.stdout.readline()) and said.strip() != "done":
        pass
    yield
    session.stdin.close()
    session.wait(60)
    session.stdout.close()


def lock_rows(stage: Stage, _dice: Random, hold: float) -> None:
    """Those of all experiments that are in use, but for the probe's."""
    with _session(_postgres(stage), "BEGIN", f"SELECT FROM experiments WHERE key LIKE '{stage.prefix}%' FOR UPDATE"):
        time.sleep(hold)


def setting(name: str, value: str, stage: Stage, _dice: Random, hold: float) -> None:
    """Of the whole server, for every session."""
    postgres = _postgres(stage)
    postgres.sql(f"ALTER SYSTEM SET {name} = '{value}'")
    postgres.sql("SELECT pg_reload_conf()")
    time.sleep(hold)
    postgres.sql(f"ALTER SYSTEM RESET {name}")
    postgres.sql("SELECT pg_reload_conf()")


def use_up_connections(stage: Stage, _dice: Random, hold: float) -> None:
    """Take every connection that there is, those of the services too, whenever one becomes free."""
    postgres = _postgres(stage)

    async def take() -> None:
        taken = []
        until = time.monotonic() + hold
        try:
            while time.monotonic() < until:
                try:
                    taken.append(await asyncpg.connect(postgres.url(_DATABASE)))
                except (asyncpg.TooManyConnectionsError, OSError):
                    with suppress(asyncpg.PostgresError):
                        await taken[0].execute(
                            f"SELECT count(pg_terminate_backend(pid)) {_OURS} AND application_name = 'bestarm'"
                        )
                    await asyncio.sleep(0.05)
        finally:
            for connection in taken:
                connection.terminate()

    asyncio.run(take())


def fill_disk(stage: Stage, _dice: Random, hold: float) -> None:
    """Leave the database no room, and then some again."""
    assert stage.disk is not None
    stage.disk.fill()
    time.sleep(hold)
    stage.disk.make_room()
    _postgres(stage).start()  # it may have given up


def vacuum_full(stage: Stage, _dice: Random, _hold: float) -> None:
    """Rewrite the tables, which locks each of them."""
    for table in _TABLES:
        _postgres(stage).sql(f"VACUUM FULL {table}", _DATABASE)


def change_schema(stage: Stage, _dice: Random, _hold: float) -> None:
    """What a migration does that the running release can live with: another column, another index."""
    for table in _TABLES:
        for statement in (
            f"ALTER TABLE {table} ADD COLUMN torture integer",
            f"CREATE INDEX ix_torture ON {table} (torture)",
            f"ALTER TABLE {table} DROP COLUMN torture",
        ):
            _postgres(stage).sql(statement, _DATABASE)


def faults(stage: Stage) -> list[Fault]:
    """Those that this stage can play."""
    timeouts = [("statement_timeout", "3ms"), ("idle_in_transaction_session_timeout", "1ms"), ("lock_timeout", "1ms")]
    engine = stage.engine
    return [
        Fault("kill -9 of PostgreSQL", engine, kill_postgres, weight=2, at_least=50, pause_seconds=0.2),
        Fault("kill -9 of a session's process", engine, kill_backend, weight=2, at_least=45, pause_seconds=0.2),
        Fault("restart of PostgreSQL", engine, restart_postgres, weight=2, at_least=25),
        Fault("SIGSTOP of PostgreSQL", engine, stop_postgres, hold_seconds=30),
        Fault("connections dropped by an administrator", engine, drop_connections, at_least=20, pause_seconds=0.2),
        *(
            Fault(
                f"connection cut: {kind}",
                engine,
                partial(cut, kind),
                20.0,
                at_least=1 if kind == "silence" else 40,
                pause_seconds=0.1,
            )
            for kind in CUTS
        ),
        *(
            Fault(f"connection cut at COMMIT: {kind}", engine, partial(cut_at_commit, kind), at_least=20, pause_seconds=0.1)
            for kind in COMMIT_CUTS
        ),
        Fault("all connections cut", engine, cut_all, at_least=20, pause_seconds=0.2),
        Fault("rows locked by a session", engine, lock_rows, hold_seconds=60),
        *(Fault(f"{name} = {value}", engine, partial(setting, name, value), 5.0) for name, value in timeouts),
        Fault("read-only database", engine, partial(setting, "default_transaction_read_only", "on"), 5.0),
        Fault("max_connections used up", engine, use_up_connections, 10.0),
        *([Fault("disk full", engine, fill_disk, 5.0)] if stage.disk is not None else []),
        Fault("VACUUM FULL", engine, vacuum_full),
        Fault("schema changed", engine, change_schema),
    ]
