"""Several hosts: whoever takes writes is found, behind those that are gone, that say nothing, or that only read."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import asyncpg
import pytest

from service.storage.database_url import async_url
from service.storage.postgres_hosts import PostgresHosts, names_several
from testing.postgres import Postgres
from testing.server import free_port

pytestmark = pytest.mark.process
_GIVEN_UP_SECONDS = 6


@pytest.fixture(scope="module")
def reachable() -> Iterator[Postgres]:
    """A PostgreSQL on a port."""
    with Postgres(listen_addresses="127.0.0.1", port=str(free_port())) as running:
        yield running


def _hosts(*ports: str | int) -> PostgresHosts:
    return PostgresHosts(
        {
            "host": ["127.0.0.1"] * len(ports),
            "port": [int(port) for port in ports],
            "user": "bestarm",
            "database": "postgres",
            "target_session_attrs": "read-write",
        }
    )


async def _port_of(hosts: PostgresHosts) -> int:
    connection = await hosts.connect()
    try:
        return int(await connection.fetchval("SHOW port"))
    finally:
        await connection.close()


def test_one_that_is_gone_is_passed_over(reachable: Postgres) -> None:
    """Whether it stands first or last in the URL."""
    for ports in ((free_port(), reachable.port), (reachable.port, free_port())):
        assert asyncio.run(_port_of(_hosts(*ports))) == int(reachable.port)


def test_one_that_says_nothing_is_passed_over_once(reachable: Postgres) -> None:
    """It takes connections, as a machine that hangs does. The next time it is asked last."""

    async def twice() -> float:
        hosts = _hosts(silent.getsockname()[1], reachable.port)
        assert await _port_of(hosts) == int(reachable.port)
        began = time.monotonic()
        assert await _port_of(hosts) == int(reachable.port)
        return time.monotonic() - began

    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert asyncio.run(asyncio.wait_for(twice(), 5 * _GIVEN_UP_SECONDS)) < 3


def test_one_that_only_reads_is_not_meant(reachable: Postgres) -> None:
    """As a standby does; if there is no other, that is said."""
    reachable.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    reachable.sql("SELECT pg_reload_conf()")
    try:
        with pytest.raises((asyncpg.TargetServerAttributeNotMatched, OSError)):
            asyncio.run(_port_of(_hosts(reachable.port, free_port())))
    finally:
        reachable.sql("ALTER SYSTEM RESET default_transaction_read_only")
        reachable.sql("SELECT pg_reload_conf()")


def test_one_host_alone_is_none_of_several() -> None:
    """It is asked as it always was."""
    assert not names_several(async_url("postgresql://me@one/db"))
    assert names_several(async_url("postgresql://me@one,other/db"))
