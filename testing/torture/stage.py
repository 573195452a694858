"""What is broken: a database with the services on it, and a probe that tells when they answer again."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from testing.databases import migrate_now
from testing.json_client import JsonClient
from testing.postgres import Postgres
from testing.postgres_pair import PostgresPair
from testing.processes import is_running, wait_until
from testing.server import NO_CERTIFICATES, Server
from testing.small_disk import SmallDisk
from testing.tcp_proxy import TcpProxy, postgres_socket
from testing.torture.workloads import ARMS

WORKERS = 2
_PROBE = "/v1/experiments/probe/assignments"
# From a primary that stands still it takes minutes: reads are given up after one.
_RECOVERY_SECONDS = 300.0
_PAUSE_SECONDS = 0.02
_DISK_BYTES = 400 * 1024 * 1024
# Every log that was flushed is on the disk, as in production; the write-ahead log leaves the small disk some room.
_POSTGRES = {"fsync": "on", "full_page_writes": "on", "max_connections": "60", "min_wal_size": "32MB", "max_wal_size": "96MB"}
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


class Service:
    """A service that can be killed and started again, on the same port."""

    def __init__(self, database_url: str, environment: dict[str, Any] | None = None) -> None:
        self._database_url, self._environment = database_url, environment or {}
        self.logs: list[Path] = []
        """That of the server, and of all that were killed before."""
        self.server = self._started(None)

    def _started(self, port: int | None) -> Server:
        server = Server(self._database_url, workers=WORKERS, port=port, BESTARM_LOG_LEVEL="info", **self._environment)
        self.logs.append(server.log)
        return server

    @property
    def url(self) -> str:
        """Where it answers."""
        return self.server.url

    def start_again(self) -> None:
        """As whatever supervises it does after it was killed."""
        self.server = self._started(self.server.port)

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self.server.kill()
        for log in self.logs:
            shutil.rmtree(log.parent)

    def workers(self) -> list[int]:
        """The processes that serve."""
        return self._logged("worker serves")

    def spares(self) -> list[int]:
        """The processes that stand by."""
        return [pid for pid in self._logged("worker stands by") if pid not in self.workers()]

    def _logged(self, event: str) -> list[int]:
        began = re.findall(rf'"{event}", "pid": (\d+)', self.server.log.read_text())
        return [int(pid) for pid in began if is_running(int(pid))]

    def is_answering(self) -> bool:
        """Is a draw acknowledged?"""
        try:
            answer = httpx.post(self.url + _PROBE, json={}, timeout=2, verify=NO_CERTIFICATES)
        except httpx.TransportError:
            return False
        return answer.status_code == 201


class Stage:
    """The services of one database."""

    def __init__(self, engine: str, database_url: str, services: list[Service]) -> None:
        self.engine, self.database_url, self.services = engine, database_url, services
        self.postgres: Postgres | None = None
        self.pair: PostgresPair | None = None
        self.proxy: TcpProxy | None = None
        self.disk: SmallDisk | None = None
        self.clock: Path | None = None
        """What is written here moves the clock of the last service."""
        self.prefix = ""
        """Of the experiments that are in use."""
        with JsonClient(services[0].url) as client:
            client.create("probe", arms=ARMS)

    @property
    def urls(self) -> list[str]:
        """Where clients go."""
        return [service.url for service in self.services]

    def wait_for_spare(self) -> None:
        """Until a service has a worker that stands by, as each has after a while."""
        wait_until(lambda: any(service.spares() for service in self.services), "a spare stands by")

    def workers_with_spares(self) -> list[int]:
        """The workers of those services that have one standing by."""
        return [pid for service in self.services if service.spares() for pid in service.workers()]

    def wait_until_answering(self) -> None:
        """Until each service has acknowledged a draw."""
        deadline = time.monotonic() + _RECOVERY_SECONDS
        for service in self.services:
            while not service.is_answering():
                assert time.monotonic() < deadline, f"{service.url} does not recover:\n{service.server.log.read_text()[-5000:]}"
                time.sleep(_PAUSE_SECONDS)

    def wait_until_whole(self) -> None:
        """Until every service has all its workers."""
        for service in self.services:
            wait_until(lambda one=service: len(one.workers()) == WORKERS, "all workers serve")  # type: ignore[misc]

    def log_lengths(self) -> dict[Path, int]:
        """How much is in each log."""
        return {log: log.stat().st_size for service in self.services for log in service.logs}

    def logged(self, read_before: dict[Path, int]) -> str:
        """What the services have logged since then, those that were killed, too."""
        return "".join(log.read_bytes()[read_before.get(log, 0) :].decode() + "\n" for log in self.log_lengths())


@contextmanager
def _closing(stage: Stage) -> Iterator[Stage]:
    try:
        yield stage
    finally:
        for service in stage.services:
            service.close()


@contextmanager
def postgres_stage() -> Iterator[Stage]:
    """Two services of two workers each on one PostgreSQL; the second one goes through a proxy, and by a clock of its own."""
    with ExitStack() as open_:
        disk = open_.enter_context(SmallDisk(_DISK_BYTES))
        folder = Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="bestarm-stage-")))
        postgres = open_.enter_context(Postgres(disk.folder, **_POSTGRES))
        postgres.sql("CREATE DATABASE torture")
        migrate_now(postgres.url("torture"))
        proxy = open_.enter_context(TcpProxy(postgres_socket(postgres.folder)))
        clock = folder / "clock"
        clock.write_text("+0")
        services = [Service(postgres.url("torture")), Service(proxy.url("torture"), fake_clock(clock))]
        stage = Stage("postgresql", postgres.url("torture"), services)
        stage.postgres, stage.proxy, stage.disk, stage.clock = postgres, proxy, disk, clock
        yield open_.enter_context(_closing(stage))


@contextmanager
def pair_stage(*, synchronous: bool) -> Iterator[Stage]:
    """Two services of two workers each on a primary and its standby."""
    with PostgresPair(synchronous=synchronous, **_POSTGRES) as pair:
        pair.primary.sql("CREATE DATABASE torture")
        url = pair.url("torture")
        migrate_now(url)
        stage = Stage("postgresql", url, [Service(url), Service(url)])
        stage.pair = pair
        with _closing(stage):
            yield stage


def fake_clock(file: Path) -> dict[str, Any]:
    """What to start a service with whose clock is as far off as the file says."""
    if not _FAKETIME.exists():
        raise RuntimeError("faketime is not installed: `apt-get install faketime`.")
    return {
        "LD_PRELOAD": " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(_FAKETIME)])),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


@contextmanager
def sqlite_stage() -> Iterator[Stage]:
    """One service of two workers on one file, by a clock of its own."""
    with ExitStack() as open_:
        disk = open_.enter_context(SmallDisk(_DISK_BYTES))
        folder = Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="bestarm-stage-")))
        clock = folder / "clock"
        clock.write_text("+0")
        url = f"sqlite:///{disk.folder / 'bestarm.db'}"
        stage = Stage("sqlite", url, [Service(url, fake_clock(clock))])
        stage.disk, stage.clock = disk, clock
        yield open_.enter_context(_closing(stage))
