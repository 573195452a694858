"""Lanes: expensive reads leave the process, few at once, and nothing that happens to them stays."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from service.application.commands.idempotency import Once
from service.application.commands.manage_keys import NewKey, WantedKey, create, revoke
from service.application.live.known_callers import KnownCallers
from service.application.live.lanes import ChangeLane, Lane
from service.application.live.reader import Reader
from service.application.live.reader_process import ReadFailed
from service.domain.callers import SERVICE
from service.errors import ArmNotFound, BestArmError, InvalidValue, Overloaded, Unauthorized
from service.storage.database import Database
from service.storage.queries import stored_experiments
from testing.databases import NewDatabase

pytestmark = pytest.mark.process
_ADMIN = "the administrator's key of this test"


async def own_process(_reader: Reader) -> int:
    """Which process reads."""
    return os.getpid()


async def wait_for_file(_reader: Reader, path: Path) -> Path:
    """A read that takes until somebody makes a file."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    await asyncio.to_thread(wait)
    return path


async def look_for(reader: Reader, key: str) -> int:
    """A read of the database."""
    async with reader.database.reading() as connection:
        return await stored_experiments.experiment_id_of(connection, key)


async def make_file(_reader: Reader, path: Path) -> None:
    """A change that can be seen."""
    await asyncio.to_thread(path.touch)


async def refuse(_reader: Reader, error: BestArmError) -> None:
    """A read that is refused."""
    raise error


async def fail(_reader: Reader) -> None:
    """A read with a defect."""
    raise ZeroDivisionError("a defect")


def test_a_read_has_a_process_of_its_own(database_url: str) -> None:
    """It reads the same database, and is the same process for the next one."""

    async def study() -> None:
        database = Database(database_url)
        lane = Lane(database)
        try:
            first, second = await lane.run(own_process), await lane.run(own_process)
            assert first == second != os.getpid()
            with pytest.raises(BestArmError, match="There is no experiment 'nobody'"):
                await lane.run(look_for, "nobody")
        finally:
            await lane.close()
            await database.close()
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)

    asyncio.run(study())


@pytest.mark.parametrize("error", [ArmNotFound("a", "b"), InvalidValue("/arms", "too many"), Overloaded("wait")])
def test_a_refusal_arrives_as_it_was(sqlite_url: str, error: BestArmError) -> None:
    """Class, message and pointer, whatever an error is made from."""

    async def study() -> None:
        lane = Lane(Database(sqlite_url))
        try:
            with pytest.raises(type(error)) as raised:
                await lane.run(refuse, error)
            assert (raised.value.args, vars(raised.value)) == (error.args, vars(error))
            with pytest.raises(ReadFailed, match="a defect"):
                await lane.run(fail)
            assert await lane.run(own_process), "a defect must not end the process"
        finally:
            await lane.close()

    asyncio.run(study())


def test_too_many_that_wait_are_refused_at_once(sqlite_url: str, tmp_path: Path) -> None:
    """One is read, as many wait as may, and the next is refused; when there is room again, there is room."""
    go = tmp_path / "go"

    async def study() -> None:
        lane = Lane(Database(sqlite_url), most_waiting=2)
        try:
            running = [asyncio.create_task(lane.run(wait_for_file, go)) for _ in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(Overloaded):
                await lane.run(own_process)
            await asyncio.to_thread(go.touch)
            assert await asyncio.gather(*running) == [go, go, go]
            assert await lane.run(own_process)
        finally:
            await lane.close()

    asyncio.run(study())


def test_a_change_that_waits_ends_with_its_key(database_url: str, tmp_path: Path) -> None:
    """Revoked while others have their turn, it is not made when its own comes; whoever came before and after is served."""
    go, changed = tmp_path / "go", tmp_path / "changed"
    once: Once[NewKey] = Once("keys", None, "", creates=True, render=lambda made: f"{made.key.id} {made.secret}".encode())

    async def study() -> None:
        database = Database(database_url)
        callers = KnownCallers(database, _ADMIN)
        lane = ChangeLane(database, callers, most_waiting=2)
        try:
            made = await create(database, SERVICE, WantedKey("a changer's", frozenset({"manage"})), once)
            name, secret = made.written().split()
            admin, leaving = await callers.identified(_ADMIN.encode()), await callers.identified(secret)
            first = asyncio.create_task(lane.run(admin, wait_for_file, go))
            waiting = asyncio.create_task(lane.run(leaving, make_file, changed))
            last = asyncio.create_task(lane.run(admin, own_process))
            await asyncio.sleep(0)
            assert lane.is_full
            with pytest.raises(Overloaded):
                await lane.run(admin, own_process)
            await revoke(database, SERVICE, name.decode())
            await callers.renew()
            await asyncio.to_thread(go.touch)
            assert await first == go
            with pytest.raises(Unauthorized):
                await waiting
            assert await last != os.getpid()
            assert not await asyncio.to_thread(changed.exists)
        finally:
            await lane.close()
            await database.close()

    asyncio.run(study())


def test_whoever_leaves_keeps_the_turn_while_the_process_works(sqlite_url: str, tmp_path: Path) -> None:
    """The next one would wait in the process for it, and be served although its key was revoked meanwhile."""
    go, changed = tmp_path / "go", tmp_path / "changed"
    once: Once[NewKey] = Once("keys", None, "", creates=True, render=lambda made: f"{made.key.id} {made.secret}".encode())

    async def study() -> None:
        database = Database(sqlite_url)
        callers = KnownCallers(database, _ADMIN)
        lane = ChangeLane(database, callers)
        try:
            made = await create(database, SERVICE, WantedKey("a changer's", frozenset({"manage"})), once)
            name, secret = made.written().split()
            admin, leaving = await callers.identified(_ADMIN.encode()), await callers.identified(secret)
            await lane.run(admin, own_process)
            first = asyncio.create_task(lane.run(admin, wait_for_file, go))
            await asyncio.sleep(0.2)
            first.cancel()
            waiting = asyncio.create_task(lane.run(leaving, make_file, changed))
            await asyncio.sleep(0.2)
            await revoke(database, SERVICE, name.decode())
            await callers.renew()
            await asyncio.to_thread(go.touch)
            with pytest.raises(Unauthorized):
                await waiting
            assert first.cancelled()
            assert not await asyncio.to_thread(changed.exists)
        finally:
            await lane.close()
            await database.close()

    asyncio.run(study())


def test_a_killed_process_is_replaced(sqlite_url: str, tmp_path: Path) -> None:
    """Whoever waited for it is told to come again, and finds another one."""

    async def study() -> None:
        lane = Lane(Database(sqlite_url))
        try:
            first = await lane.run(own_process)
            waiting = asyncio.create_task(lane.run(wait_for_file, tmp_path / "never"))
            os.kill(first, signal.SIGKILL)
            with pytest.raises(Overloaded):
                await waiting
            assert await lane.run(own_process) != first
        finally:
            await lane.close()

    asyncio.run(study())


@pytest.fixture
def sqlite_url(sqlite_databases: NewDatabase) -> str:
    """A database for what is not about databases."""
    return sqlite_databases()
