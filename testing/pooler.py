"""PgBouncer before a PostgreSQL, as Debian packages it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal, Self

from testing.postgres import Postgres
from testing.server import free_port

_START_SECONDS = 30


class Pooler:
    """Pools sessions or transactions of a PostgreSQL."""

    def __init__(self, postgres: Postgres, mode: Literal["session", "transaction"], *, processes: int = 60) -> None:
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
        if program is None:
            raise RuntimeError("pgbouncer is not installed: `apt-get install pgbouncer`.")
        self._folder = tempfile.TemporaryDirectory(prefix="bestarm-pooler-", dir="/tmp")
        folder, self.port = Path(self._folder.name), free_port()
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={postgres.folder} port={postgres.port} user=bestarm\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = {mode}\ndefault_pool_size = {processes}\nmax_client_conn = 200\n"
        )
        folder.chmod(0o755)
        user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None  # it refuses to run as root
        with (folder / "log").open("ab") as log:
            self.process = subprocess.Popen([program, settings], stdout=log, stderr=log, user=user)
        deadline = time.monotonic() + _START_SECONDS
        while b"process up" not in (folder / "log").read_bytes():
            assert self.process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def url(self, database: str) -> str:
        """How a service is told to connect through it."""
        return f"postgresql://bestarm@127.0.0.1:{self.port}/{database}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()
