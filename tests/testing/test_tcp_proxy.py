"""A cut at the commit leaves either nothing or everything, and whoever asked for it does not know which."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from testing.commit_recogniser import CommitRecogniser
from testing.postgres import Postgres
from testing.tcp_proxy import COMMIT_CUTS, CommitCut, TcpProxy, postgres_socket

pytestmark = pytest.mark.process
_DATABASE = "commits"
_INSERT = "WITH r AS (SELECT $1::int AS n) INSERT INTO t SELECT n FROM r"


async def _alone(session: asyncpg.Connection, number: int) -> None:
    await (await session.prepare(_INSERT)).fetch(number)


async def _in_steps(session: asyncpg.Connection, number: int) -> None:
    await session.execute("BEGIN")
    await session.fetch("SELECT count(*) FROM t")
    await _alone(session, number)
    await session.execute("COMMIT")


async def _by_the_driver(session: asyncpg.Connection, number: int) -> None:
    async with session.transaction():
        await session.execute(f"INSERT INTO t VALUES ({number})")


@pytest.fixture
def proxy(postgres: Postgres) -> TcpProxy:
    """Before a database with an empty table."""
    postgres.sql(f"CREATE DATABASE {_DATABASE}")
    postgres.sql("CREATE TABLE t (n int)", _DATABASE)
    return TcpProxy(postgres_socket(postgres.folder))


async def _cut_off(url: str, write: Callable[[asyncpg.Connection, int], Awaitable[None]]) -> None:
    session = await asyncpg.connect(url)
    assert await session.fetch("SELECT n FROM t") == []
    await session.execute("BEGIN; SELECT 1")
    await session.execute("COMMIT")  # of nothing: it passes
    with pytest.raises((asyncpg.PostgresConnectionError, OSError)):
        await asyncio.wait_for(write(session, 7), 30)
    session.terminate()


@pytest.mark.parametrize("kind", COMMIT_CUTS)
@pytest.mark.parametrize("write", [_alone, _in_steps, _by_the_driver])
def test_before_it_nothing_is_written_and_after_it_everything(
    postgres: Postgres, proxy: TcpProxy, kind: CommitCut, write: Callable[[asyncpg.Connection, int], Awaitable[None]]
) -> None:
    """A statement that is a transaction by itself, and those that have a COMMIT of their own; one of nothing passes."""
    try:
        with proxy:
            proxy.commit_cuts.append(kind)
            asyncio.run(_cut_off(proxy.url(_DATABASE), write))
            assert proxy.injected == 1
        assert postgres.sql("SELECT n FROM t", _DATABASE).split() == ([] if kind == "before" else ["7"])
    finally:
        postgres.drop_connections(_DATABASE)
        postgres.sql(f"DROP DATABASE {_DATABASE}")


def _message(letter: bytes, text: bytes) -> bytes:
    return letter + struct.pack("!i", len(text) + 4) + text


def test_a_commit_is_recognised_however_it_is_split_into_packets() -> None:
    """In the packet that completes it, and in no other."""
    insert = _message(b"P", b"s1\0" + _INSERT.encode() + b"\0\0\0") + _message(b"S", b"")
    run = _message(b"B", b"\0s1\0" + b"\0" * 8) + _message(b"E", b"\0\0\0\0\0") + _message(b"S", b"")
    greeting = struct.pack("!ii", 8, 80_877_103) + struct.pack("!ii", 22, 196_608) + b"user\0bestarm\0\0"
    begin, commit, rollback = (_message(b"Q", said + b";\0") for said in (b"BEGIN", b"COMMIT", b"ROLLBACK"))
    whole = greeting + insert + run + begin + run + rollback + begin + run + commit
    recogniser = CommitRecogniser()
    commits = [place for place in range(len(whole)) if recogniser.has_commit(whole[place : place + 1])]
    assert commits == [len(greeting + insert + run) - 1, len(whole) - 1]
    assert CommitRecogniser().has_commit(whole)
