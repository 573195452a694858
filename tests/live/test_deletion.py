"""Deleting while others ask, and being killed in the middle of it: nothing comes back and nothing is left behind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import httpx
import pytest

from service.application.commands import delete, duplicate
from service.application.commands.ask import Ask, AskMany
from service.application.commands.delete import Deleter
from service.application.commands.experiments import Described
from service.application.commands.idempotency import Once
from service.application.commands.lifecycle import LifecycleMove
from service.domain.callers import by_service
from service.errors import ExperimentNotFound, ExperimentNotRunning
from service.storage import removal
from testing.databases import NewDatabase
from testing.history import write_history
from testing.rows import Rows
from testing.server import Server
from testing.workers import Workers

_ARMS = [("a", 0.0), ("b", 0.0)]
_TABLES = [table.name for table in removal.TABLES]


def _archive(workers: Workers, key: str, arm: str = "a") -> None:
    workers.submit(key, LifecycleMove("conclude", arm))
    workers.submit(key, LifecycleMove("archive"))


def _delete(workers: Workers, key: str, worker: int = 0) -> None:
    workers.run(delete.delete(workers.contexts[worker], by_service(key), key))


def _orphans(rows: Rows) -> dict[str, int]:
    """How many rows of each table belong to no experiment that can be found."""
    counts = ", ".join(
        f"(SELECT count(*) FROM {table} WHERE experiment_id > 0 AND experiment_id NOT IN "
        "(SELECT id FROM experiments WHERE status <> 'deleted'))"
        for table in _TABLES
    )
    found = rows.query(f"SELECT {counts}, (SELECT count(*) FROM experiments WHERE status = 'deleted')")[0]
    return {name: int(count) for name, count in zip([*_TABLES, "experiments"], found, strict=True) if count}


def _wait_until_gone(rows: Rows) -> None:
    deadline = time.monotonic() + 120
    while left := _orphans(rows):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.parametrize("swept", [False, True], ids=["its row is there", "its row is gone"])
def test_a_worker_that_remembers_it_brings_nothing_back(workers: Workers, database_url: str, *, swept: bool) -> None:
    """Each worker has it in memory; after the other deleted it, asks find nothing, and then the new one of the same key."""
    workers.create("one", _ARMS)
    for worker in (0, 1, 0, 1):
        workers.submit("one", Ask(None), worker)
    _archive(workers, "one")
    for worker in (0, 1):
        with pytest.raises(ExperimentNotRunning):
            workers.submit("one", Ask(None), worker)
    _delete(workers, "one")
    if swept:
        workers.run(Deleter(workers.contexts[0]).remove_all())
    for worker in (0, 1):
        with pytest.raises(ExperimentNotFound):
            workers.submit("one", Ask(None), worker)
        with pytest.raises(ExperimentNotFound):
            workers.submit("one", LifecycleMove("reopen"), worker)
    workers.create("one", [("c", 0.0), ("d", 0.0), ("e", 0.0)])
    for worker in (1, 0):
        answer = workers.submit("one", Ask(None), worker)
        assert answer.arm.key in "cde"
    assert workers.replay("one") == 3
    workers.run(Deleter(workers.contexts[1]).remove_all())
    with Rows(database_url) as rows:
        assert _orphans(rows) == {}


def test_what_is_remembered_of_a_key_fits_no_other_experiment(workers: Workers) -> None:
    """The new one has the same key and comes to the same version; workers that knew the old one draw from the new one's arms."""
    for names in ("ab", "cd", "ef", "gh"):
        workers.create("one", [(name, 0.0) for name in names])
        for worker in (0, 1, 0, 1):
            assert workers.submit("one", Ask(None), worker).arm.key in names
        assert workers.replay("one") == 5
        _archive(workers, "one", names[0])
        _delete(workers, "one", worker=1)
        workers.run(Deleter(workers.contexts[0]).remove_all())


@pytest.mark.process
def test_asks_that_race_with_the_deletion(new_database: NewDatabase, key: str) -> None:
    """Many ask through two workers while an experiment is archived, deleted and made anew, again and again.

    Each ask is answered before the end of its experiment, or refused with 404 or 409; and nothing is left behind.
    """
    url = new_database()
    statuses: Counter[int] = Counter()
    stopped = threading.Event()

    def keep_asking(server: Server) -> None:
        with server.client() as client:
            while not stopped.is_set():
                answer = client.post(f"/v1/experiments/{key}/assignments", json={})
                if answer.status_code == HTTPStatus.CREATED:
                    told = client.post(f"/v1/experiments/{key}/assignments/{answer.json()['id']}/reward", json={"reward": 1})
                    statuses[told.status_code] += 1
                statuses[answer.status_code] += 1

    with Server(url, workers=2, BESTARM_SWEEP_SECONDS="0.1") as server, ThreadPoolExecutor(6) as pool:
        asking = [pool.submit(keep_asking, server) for _ in range(6)]
        with server.client() as client:
            for _ in range(12):
                _live_and_die(client, key)
            stopped.set()
            for one in asking:
                one.result()
            assert client.get(f"/v1/experiments/{key}").status_code == HTTPStatus.NOT_FOUND
            assert len(client.get("/v1/log").json()["entries"]) == 12
        with Rows(url) as rows:
            _wait_until_gone(rows)
            assert rows.query("SELECT count(*) FROM experiments") == [(0,)]
        logged = server.log.read_text()
    assert "Traceback" not in logged, logged
    assert set(statuses) <= {200, 201, 404, 409}, statuses
    assert min(statuses[200], statuses[201], statuses[404]) > 0, statuses


def _live_and_die(client: httpx.Client, key: str) -> None:
    path = f"/v1/experiments/{key}"
    made = client.post("/v1/experiments", json={"key": key, "arms": [{"key": "a"}, {"key": "b"}]})
    assert made.status_code == HTTPStatus.CREATED, made.text
    time.sleep(0.2)
    assert client.post(f"{path}/conclude", json={"arm": "a"}).status_code == HTTPStatus.OK
    assert client.post(f"{path}/archive").status_code == HTTPStatus.OK
    gone = client.delete(path, params={"confirm": key})
    assert gone.status_code == HTTPStatus.NO_CONTENT, gone.text


@pytest.mark.process
def test_a_deletion_outlives_a_killed_service(new_database: NewDatabase, key: str) -> None:
    """Killed when half of the rows are gone, and started again: the other half goes, and the neighbour replays clean."""
    url = new_database()
    workers = Workers(url)
    for name in (key, "neighbour"):
        workers.create(name, _ARMS)
        for _ in range(3 if name == key else 1):
            workers.submit(name, AskMany([None] * 10_000, by_count=True))
    _archive(workers, key)
    workers.close()
    with Rows(url) as rows:
        counted = "SELECT count(*) FROM assignments"
        before = rows.query(counted)[0][0]
        server = Server(url, workers=2, BESTARM_SWEEP_SECONDS="0.1")
        with server.client() as client:
            assert client.delete(f"/v1/experiments/{key}", params={"confirm": key}).status_code == HTTPStatus.NO_CONTENT
            assert client.get(f"/v1/experiments/{key}").status_code == HTTPStatus.NOT_FOUND
            deadline = time.monotonic() + 60
            while not 10_000 < rows.query(counted)[0][0] < before - 1_000:
                assert time.monotonic() < deadline
                time.sleep(0.005)
        server.kill()
        assert _orphans(rows), "it was killed in the middle of it"
        assert rows.query("SELECT count(*) FROM experiments WHERE status = 'deleted'") == [(1,)]
        with Server(url, workers=2, BESTARM_SWEEP_SECONDS="0.1") as again, again.client() as client:
            assert client.get(f"/v1/experiments/{key}").status_code == HTTPStatus.NOT_FOUND
            made = client.post("/v1/experiments", json={"key": key, "arms": [{"key": "x"}, {"key": "y"}]})
            assert made.status_code == HTTPStatus.CREATED
            assert client.post(f"/v1/experiments/{key}/assignments", json={}).json()["draw"] == 1
            _wait_until_gone(rows)
        assert rows.query("SELECT count(*) FROM experiments") == [(2,)]
    workers = Workers(url)
    assert (workers.replay("neighbour"), workers.replay(key)) == (10_001, 2)
    workers.close()


def test_two_workers_may_remove_the_same_rows(workers: Workers, database_url: str) -> None:
    """At the same time, several experiments, each of many chunks: all rows go, and no worker fails."""
    for name in ("one", "two"):
        workers.create(name, _ARMS)
        write_history(workers, name, 4_000)
        _archive(workers, name)
        _delete(workers, name)

    async def together() -> None:
        await asyncio.gather(*(Deleter(context).remove_all() for context in workers.contexts))

    with Rows(database_url) as rows:
        deadline = time.monotonic() + 60
        while _orphans(rows):
            workers.run(together())
            assert time.monotonic() < deadline


def test_replay_is_clean_after_reopening_and_of_a_duplicate(workers: Workers) -> None:
    """Reopened in the middle of a long history, duplicated from it, and both go on: every decision can be repeated."""
    workers.create("one", _ARMS)
    write_history(workers, "one", 3_000)
    workers.submit("one", LifecycleMove("conclude"))
    workers.submit("one", LifecycleMove("reopen"), 1)
    workers.submit("one", LifecycleMove("resume"))
    write_history(workers, "one", 2_000)
    once: Once[Described] = Once("duplicate", None, "", creates=True, render=lambda _: b"")
    workers.run(duplicate.duplicate(workers.contexts[1], by_service("one"), "two", once))
    workers.submit("two", LifecycleMove("start"))
    write_history(workers, "two", 2_000)
    assert workers.replay("one") > 5_000
    assert workers.replay("two") > 2_000
