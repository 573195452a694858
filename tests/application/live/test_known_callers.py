"""Keys as a worker knows them: all of them, never older than is believed, and how their use is written down."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from service.application.commands.idempotency import Once
from service.application.commands.manage_keys import NewKey, WantedKey, create, revoke
from service.application.commands.sign_in import sign_in
from service.application.live import known_callers
from service.application.live.known_callers import KnownCallers
from service.application.reads.readiness import require_ready
from service.domain.api_keys import digest_of
from service.domain.callers import ANYBODY, SERVICE
from service.engine.clock import now_microseconds
from service.errors import DatabaseUnavailable, Unauthorized
from service.storage.database import Database
from service.storage.queries import change_follower, stored_api_keys
from testing.databases import NewDatabase
from testing.postgres import Postgres

ADMIN = "the administrator's key of this test"


def _shown(made: NewKey) -> bytes:
    return json.dumps({"id": made.key.id, "secret": made.secret}).encode()


async def _new_key(database: Database) -> tuple[str, bytes]:
    """The id and the secret of a new key."""
    once: Once[NewKey] = Once("keys", None, "", creates=True, render=_shown)
    made = json.loads((await create(database, SERVICE, WantedKey("a reader's", frozenset({"read"})), once)).written())
    return made["id"], made["secret"].encode()


def _run(url: str, doing: Callable[[Database], Awaitable[None]]) -> None:
    async def run() -> None:
        database = Database(url, pool_size=4)
        try:
            await doing(database)
        finally:
            await database.close()

    asyncio.run(run())


def test_what_is_too_old_is_not_believed(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was kept from asking what has changed asks before it lets anybody in, or goes on with what they began."""

    async def doing(database: Database) -> None:
        name, secret = await _new_key(database)
        callers = KnownCallers(database, None)
        caller = await callers.identified(secret)
        await revoke(database, SERVICE, name)  # as another worker would, and nobody tells this one
        monkeypatch.setattr(callers, "_trusted_until", 0.0)
        assert callers.refusal_of(secret, is_new=True) is None, "refused by what is not known"
        with pytest.raises(Unauthorized):
            await callers.require_still_taken(caller)
        with pytest.raises(Unauthorized) as refused:
            await callers.identified(secret)
        assert refused.value.reason == "revoked"

    _run(database_url, doing)


def test_a_database_that_is_too_slow_refuses_no_key_as_bad(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is too old before it is there: nobody is let in, and nobody is told that the key is wrong, or missing."""
    monkeypatch.setattr(known_callers, "_TRUSTED_SECONDS", -1.0)

    async def doing(database: Database) -> None:
        callers = KnownCallers(database, None)
        with pytest.raises(DatabaseUnavailable):  # there are no keys, and none is needed
            await callers.identified(None)
        _, secret = await _new_key(database)
        for given in (secret, None, b"ba_0123456789ab_" + b"a" * 43, b"whatever"):
            with pytest.raises(DatabaseUnavailable):
                await callers.identified(given)

    _run(database_url, doing)


def test_a_database_that_is_away_lets_nobody_in(tmp_path: Path) -> None:
    """But for the administrator, whose key is not in it."""

    async def doing(database: Database) -> None:
        callers = KnownCallers(database, ADMIN)
        admin = await callers.identified(ADMIN.encode())
        await callers.require_still_taken(admin)
        for secret in (None, b"ba_0123456789ab_" + b"a" * 43, b"whatever"):
            with pytest.raises(DatabaseUnavailable):
                await callers.identified(secret)

    _run(f"sqlite:///{tmp_path}/nowhere/bestarm.db", doing)


def test_many_keys_are_learned_a_few_at_a_time(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, in the end, those that were revoked meanwhile included."""
    monkeypatch.setattr(change_follower, "_AT_ONCE", 2)

    async def doing(database: Database) -> None:
        made = [await _new_key(database) for _ in range(5)]
        await revoke(database, SERVICE, made[1][0])
        callers = KnownCallers(database, None)
        await callers.refresh()
        known = [callers.refusal_of(secret, is_new=False) is None for _, secret in made]
        assert known == [True, False, True, True, True]

    _run(database_url, doing)


def test_use_is_written_once_a_minute(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a key is used, and in how many workers: the first use at once, and the next one that is a minute later."""

    async def doing(database: Database) -> None:
        name, secret = await _new_key(database)
        callers = KnownCallers(database, None)

        async def last_use() -> int | None:
            await callers.identified(secret)
            await callers.round()
            async with database.reading() as connection:
                key = await stored_api_keys.key_by_id(connection, name)
            return None if key is None else key.last_used_at

        began = now_microseconds()
        first = await last_use()
        assert first is not None
        assert began <= first <= now_microseconds()
        assert await last_use() == first
        other = KnownCallers(database, None)
        await other.identified(secret)
        await other.round()
        assert await last_use() == first, "another worker has not written it down yet, but this one has"
        monkeypatch.setattr(known_callers, "_USE_WRITTEN_SECONDS", 0.0)
        assert (await last_use() or 0) > first

    _run(database_url, doing)


def test_keys_are_learned_anew_after_a_fallback(database_url: str) -> None:
    """A standby that was behind has taken over: its numbers of changes are lower, and what it does not know is no key."""

    async def doing(database: Database) -> None:
        kept, lost = await _new_key(database), await _new_key(database)
        callers = KnownCallers(database, None)
        for _, secret in (kept, lost):
            await callers.identified(secret)
        async with database.writing() as connection:
            await connection.exec_driver_sql(f"DELETE FROM api_keys WHERE id = '{lost[0]}'")
            await connection.exec_driver_sql("UPDATE api_key_changes SET number = 1")
        await callers.refresh()
        assert callers.refusal_of(kept[1], is_new=False) is None
        assert callers.refusal_of(lost[1], is_new=False) is not None

    _run(database_url, doing)


def test_a_failover_that_lost_a_change_is_noticed_although_its_number_was_given_out_again(
    postgresql_databases: NewDatabase, postgres: Postgres
) -> None:
    """The connection was lost, so nothing that was known goes on: what others stored since is known, what was lost is not."""

    async def doing(database: Database) -> None:
        kept, lost = await _new_key(database), await _new_key(database)
        callers = KnownCallers(database, None)
        person = await callers.identified(kept[1])
        session = (await sign_in(database, person, digest_of(kept[1]))).session
        await callers.refresh()
        async with database.writing() as connection:
            await connection.exec_driver_sql(f"DELETE FROM api_keys WHERE id = '{lost[0]}'")
            await connection.exec_driver_sql("UPDATE api_key_changes SET number = number - 1")
            await connection.exec_driver_sql("DELETE FROM sessions")  # as if the one was lost and another came and went
        made = await _new_key(database)  # with the number of the one that was lost
        await callers.refresh()
        assert callers.refusal_of(lost[1], is_new=False) is None, "as far as anybody could tell by the number"
        assert callers.sessions.is_good(session.digest)
        assert await asyncio.to_thread(postgres.drop_connections, urlsplit(database.url).path[1:])
        await asyncio.sleep(0.1)  # the loop sees it
        await callers.refresh()
        assert [callers.refusal_of(secret, is_new=False) is None for _, secret in (kept, lost, made)] == [True, False, True]
        assert not callers.sessions.is_good(session.digest)

    _run(postgresql_databases(), doing)


@pytest.mark.parametrize("may_be_open", [True, False])
def test_a_service_is_open_only_where_it_may_be(database_url: str, may_be_open: bool) -> None:  # noqa: FBT001 - parametrized
    """Not before the keys were looked for, and beyond loopback not even if the database is one from before the first key."""
    said = []

    async def doing(database: Database) -> None:
        callers = KnownCallers(database, None, may_be_open=may_be_open, when_open=lambda: said.append("open"))
        assert not callers.is_open, "nobody has looked yet"
        _, secret = await _new_key(database)
        await callers.identified(secret)
        assert not callers.is_open
        async with database.writing() as connection:
            await connection.exec_driver_sql("DELETE FROM api_keys")
            await connection.exec_driver_sql("UPDATE api_key_changes SET number = 0")
        for _ in range(2):
            await callers.refresh()
        assert callers.is_open is may_be_open
        if may_be_open:
            assert await callers.identified(None) is ANYBODY
        else:
            assert callers.known(None) is None
            with pytest.raises(Unauthorized):
                await callers.identified(None)

    _run(database_url, doing)
    assert said == ["open"] * may_be_open


def test_a_worker_whose_database_is_away_does_not_say_that_there_are_no_keys(tmp_path: Path) -> None:
    """It starts, and says nothing of what it does not know; and whoever has stored a key is not told that it failed."""
    said = []

    async def doing(database: Database) -> None:
        callers = KnownCallers(database, None, may_be_open=True, when_open=lambda: said.append("open"))
        await callers.start()
        assert not callers.is_open
        await callers.renew()  # after a commit

    _run(f"sqlite:///{tmp_path}/nowhere/bestarm.db", doing)
    assert not said


def test_keys_and_probes_wait_for_no_other_reads(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection for reads is taken: the keys stay known, and the service ready, many probes at once included."""

    async def doing(database: Database) -> None:
        _, secret = await _new_key(database)
        callers = KnownCallers(database, None)
        async with AsyncExitStack() as held, asyncio.timeout(30):
            for _ in range(database.pool_use()[1]):
                await held.enter_async_context(database.reading())
            for _ in range(3):
                monkeypatch.setattr(callers, "_trusted_until", 0.0)
                probes = [asyncio.create_task(require_ready(database)) for _ in range(20)]
                assert (await callers.identified(secret)).scopes == {"read"}
                await asyncio.gather(*probes)

    _run(database_url, doing)
