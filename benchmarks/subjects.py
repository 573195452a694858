"""What is measured, started and stopped: the service, the floors, the naive design; all on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import httpx

from testing.postgres import Postgres
from testing.server import Server, free_port

HERE = Path(__file__).parent
FIXED = HERE / "fixed"
_numbers = count(1)
# Durable as in production: this is what the ratios are about.
DURABLE = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
}


@contextmanager
def cluster() -> Iterator[Postgres]:
    """A PostgreSQL with durable commits, and the naive design's database in it."""
    with Postgres(**DURABLE) as running:
        running.sql("CREATE DATABASE naive")
        running.sql((FIXED / "schema.sql").read_text(), "naive")
        yield running


@contextmanager
def service(
    postgres: Postgres | None,
    *,
    workers: int = 1,
    experiments: int = 1,
    arms: int = 10,
    checkout: Path = HERE.parent,
    key: str | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: object,
) -> Iterator[Server]:
    """The service of a checkout on a fresh database, with experiments hot-0, hot-1, … that have some evidence already."""
    with tempfile.TemporaryDirectory() as folder:
        if postgres is None:
            url = f"sqlite:///{folder}/bench.db"
        else:
            name = f"bench_{next(_numbers)}"
            postgres.sql(f"CREATE DATABASE {name}")
            url = postgres.url(name)
        python = checkout / ".venv/bin/python"
        program = (python if python.exists() else sys.executable, "-m", "service")
        subprocess.run([*program, "migrate"], cwd=checkout, env=os.environ | {"BESTARM_DATABASE_URL": url}, check=True)
        running = Server(url, workers=workers, program=program, cwd=checkout, key=key, **(environment or {}))  # type: ignore[arg-type]
        with running, running.client() as client:
            for number in range(experiments):
                create(client, f"hot-{number}", arms, **settings)
            yield running


def database_of(server: Server) -> str:
    """The name of the database that a service of this module uses."""
    return str(re.findall(r"bench_\d+", server.database_url)[0])


def create(client: httpx.Client, key: str, arms: int, **settings: object) -> None:
    """An experiment with a few rewards of every arm."""
    body = {"key": key, "arms": [{"key": f"a{arm}"} for arm in range(arms)], **settings}
    client.post("/v1/experiments", json=body).raise_for_status()
    told = [{"arm": f"a{arm}", "reward": int(draw < 1 + 3 * arm / arms)} for arm in range(arms) for draw in range(5)]
    for start in range(0, len(told), 10_000):
        client.post(f"/v1/experiments/{key}/observations", json={"observations": told[start : start + 10_000]}).raise_for_status()


@contextmanager
def application(target: str, folder: Path = HERE.parent, **environment: str) -> Iterator[str]:
    """Any ASGI application under the same uvicorn as the service; its address."""
    port = free_port()
    command = [
        sys.executable, "-m", "uvicorn", target, "--loop", "uvloop", "--http", "httptools",
        "--port", str(port), "--log-level", "warning", "--no-access-log",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=folder, env=os.environ | environment)
    try:
        for _ in range(600):
            try:
                httpx.get(f"http://127.0.0.1:{port}/", timeout=5)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def naive(postgres: Postgres) -> Iterator[str]:
    """The naive design on its own tables."""
    url = f"postgresql+asyncpg://bestarm@/naive?host={postgres.folder}"
    with application("naive:app", FIXED, NAIVE_DATABASE_URL=url) as address:
        yield address
