"""Two PostgreSQL servers, one of which follows the other, and what an operator's failover manager does with them."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from testing.memory import processes_of
from testing.postgres import Postgres
from testing.server import free_port

_NAME = "standby"
_WAIT_SECONDS = 60


class PostgresPair:
    """A primary, and a standby that gets its log: before a commit is acknowledged (`synchronous`), or soon after."""

    def __init__(self, within: Path = Path("/tmp"), /, *, synchronous: bool = True, **settings: str) -> None:  # noqa: S108 - folders of their own
        self.is_synchronous = synchronous
        on_tcp = {"listen_addresses": "127.0.0.1", "wal_keep_size": "256MB", "max_wal_senders": "5"} | settings
        self._ports = free_port(), free_port()
        self.primary, self.other = (Postgres(within, **on_tcp, port=str(port)) for port in self._ports)
        self.has_standby = False
        self.follow()

    def url(self, database: str) -> str:
        """Both, of which a service takes the one that is the primary just then."""
        one, other = self._ports
        return f"postgresql://bestarm@127.0.0.1:{one},127.0.0.1:{other}/{database}"

    def follow(self) -> None:
        """Make the other one a standby of the primary, from a new copy, and wait until it follows."""
        leader, follower = self.primary, self.other
        follower.kill()  # of the one that was frozen there is more left than of the one that was killed
        shutil.rmtree(follower.data)
        connection = f"host=127.0.0.1 port={leader.settings['port']} user=bestarm application_name={_NAME}"
        leader.run("pg_basebackup", "-d", connection, "-D", str(follower.data), "-R", "-c", "fast", "--no-sync")
        follower.start()
        self._wait("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1")
        self._require(_NAME if self.is_synchronous else "")
        if self.is_synchronous:
            self._wait("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")
        self.has_standby = True

    def fail_over(self, *, frozen: bool = False) -> None:
        """The primary is killed, or stands still, and the standby takes its place; it waits for nobody until it is followed."""
        if frozen:
            for pid in processes_of(self.primary.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
        else:
            self.primary.kill()
        self.primary, self.other = self.other, self.primary
        self.has_standby = False
        self._require("")
        self.primary.sql("SELECT pg_promote()")

    def _require(self, standby: str) -> None:
        """Whom a commit waits for."""
        self.primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'")
        self.primary.sql("SELECT pg_reload_conf()")

    def _wait(self, query: str, until: str) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while self.primary.sql(query) != until:
            assert time.monotonic() < deadline, query
            time.sleep(0.02)

    def close(self) -> None:
        """Stop and remove both."""
        for server in (self.primary, self.other):
            server.kill()  # one that is frozen hears nothing else
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
