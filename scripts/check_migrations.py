"""The migrations build exactly the tables that the code declares, on an empty SQLite file and on an empty PostgreSQL.

python -m scripts.check_migrations
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testing.postgres import Postgres


def troubles_of(database_url: str) -> str:
    """What alembic says when it cannot migrate, or when it would migrate more after that; nothing if all is well."""
    environment = os.environ | {"BESTARM_DATABASE_URL": database_url}
    for arguments in (("upgrade", "head"), ("check",)):
        command = [sys.executable, "-m", "alembic", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - our own migrations
        if done.returncode:
            return done.stdout + done.stderr
    return ""


def on_sqlite() -> str:
    """The troubles on SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        return troubles_of(f"sqlite:///{Path(folder) / 'bestarm.db'}")


def on_postgresql() -> str:
    """The troubles on PostgreSQL."""
    with Postgres() as cluster:
        return troubles_of(cluster.url("postgres"))


def main() -> int:
    """Check both at once, say what is wrong."""
    with ThreadPoolExecutor() as both:
        sqlite, postgresql = both.submit(on_sqlite), both.submit(on_postgresql)
        found = {"SQLite": sqlite.result(), "PostgreSQL": postgresql.result()}
    for name, troubles in found.items():
        verdict = troubles or "the migrations build the tables that the code declares."
        print(f"{name}: {verdict}")  # noqa: T201 - a program's answer
    return int(any(found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
