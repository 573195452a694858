"""Many at once: several clients, several worker processes, one experiment; on both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient, Reply, arms
from testing.rows import Rows
from testing.server import Server

Result = TypeVar("Result")
CLIENTS, TURNS = 64, 50


@pytest.fixture(scope="module")
def workers(new_database: NewDatabase) -> Iterator[Server]:
    """The service with two worker processes."""
    with Server(new_database(), workers=2) as running:
        yield running
        logged = running.log.read_text()
    assert "Traceback" not in logged, logged


@pytest.fixture(scope="module")
def stored(workers: Server) -> Iterator[Rows]:
    """Its database."""
    with Rows(workers.database_url) as database:
        yield database


def at_once(url: str, clients: int, work: Callable[[JsonClient, int], Result]) -> list[Result]:
    """Let so many clients, each with a connection of its own, begin at the same moment."""
    ready = Barrier(clients)

    def run(client: int) -> Result:
        with JsonClient(url) as wire:
            wire.send("GET", "/healthz")
            ready.wait(60)
            return work(wire, client)

    with ThreadPoolExecutor(clients) as threads:
        return list(threads.map(run, range(clients)))


def test_asks_and_tells_of_many_clients(workers: Server, stored: Rows, key: str) -> None:
    """64 clients ask and tell 50 times each: consecutive draw numbers, exact sums, counts equal to rows, no failure."""
    with JsonClient(workers.url) as wire:
        wire.create(key, arms=arms(5), reward={"kind": "real"})

    def ask_and_tell(wire: JsonClient, client: int) -> list[tuple[int, int, float]]:
        told = []
        for turn in range(TURNS):
            asked = wire.ask(key, f"client-{client}")
            reward = client + turn / 64
            wire.tell(key, asked["id"], reward)
            told.append((asked["draw"], asked["value"], reward))
        return told

    told = sorted(one for each in at_once(workers.url, CLIENTS, ask_and_tell) for one in each)
    assert [draw for draw, _, _ in told] == list(range(1, CLIENTS * TURNS + 1))
    assert stored.assignments_of(key) == [(draw, arm, "rewarded", reward) for draw, arm, reward in told]
    for position, pending, observations, total in stored.arms_of(key):
        rewards = [reward for _, arm, reward in told if arm == position]
        numerator, _, shift = total.partition("/2^")
        assert (pending, observations) == (0, len(rewards))
        assert int(numerator) / 2 ** int(shift or 0) == sum(rewards)  # sums of 64ths are exact in doubles
    version, draws = stored.query("SELECT version, draws FROM experiments WHERE key = :key", key=key)[0]
    sequence = stored.query(
        "SELECT count(*), min(e.sequence), max(e.sequence) FROM events e JOIN experiments x ON x.id = e.experiment_id"
        " WHERE x.key = :key",
        key=key,
    )[0]
    assert (version, draws) == (1 + 2 * CLIENTS * TURNS, CLIENTS * TURNS)
    assert sequence == (version, 1, version)


def test_a_key_in_flight_many_times_has_one_effect(workers: Server, stored: Rows, key: str) -> None:
    """Every retry that runs beside the first request gets the first one's answer: asks, batches, arms."""
    with JsonClient(workers.url) as wire:
        wire.create(key, arms=arms(2))
    path = f"/v1/experiments/{key}"

    def same(where: str, body: object) -> list[Reply]:
        return at_once(workers.url, 12, lambda wire, _: wire.send("POST", f"{path}/{where}", body, idempotency_key="once"))

    for where, body in (("assignments", {"unit": "u"}), ("assignments/batch", {"count": 3}), ("arms", {"key": "new"})):
        replies = same(where, body)
        assert [reply.status for reply in replies] == [201] * 12, where
        assert all(reply.body == replies[0].body for reply in replies)
        assert Counter(reply.headers["idempotency-replayed"] for reply in replies) == {None: 1, "true": 11}
    assert len(stored.assignments_of(key)) == 4
    assert len(stored.arms_of(key)) == 3


def test_creating_the_same_experiment_at_once(workers: Server, stored: Rows, key: str) -> None:
    """With a key all get the first answer; without one, one is created and the others are 409."""

    def create(wire: JsonClient, client: int) -> Reply:
        if client % 2:
            return wire.send("POST", "/v1/experiments", {"key": f"{key}-a", "arms": arms(2)}, idempotency_key=f"{key}-a")
        return wire.send("POST", "/v1/experiments", {"key": f"{key}-b", "arms": arms(2)})

    replies = at_once(workers.url, 16, create)
    assert [reply.status for reply in replies[1::2]] == [201] * 8
    assert len({str(reply.body) for reply in replies[1::2]}) == 1
    assert sorted(reply.status for reply in replies[::2]) == [201] + [409] * 7
    assert stored.query("SELECT count(*) FROM experiments WHERE key IN (:a, :b)", a=f"{key}-a", b=f"{key}-b") == [(2,)]


def test_one_idempotency_key_for_many_experiments_at_once(workers: Server, stored: Rows, key: str) -> None:
    """One is created; the others are told that the key was used with another body."""
    replies = at_once(
        workers.url,
        12,
        lambda wire, client: wire.send(
            "POST", "/v1/experiments", {"key": f"{key}-{client}", "arms": arms(2)}, idempotency_key=f"{key}-one"
        ),
    )
    assert sorted(reply.status for reply in replies) == [201] + [422] * 11
    assert {reply.body.get("code") for reply in replies if reply.status == 422} == {"idempotency_key_reused"}
    assert stored.query("SELECT count(*) FROM experiments WHERE key LIKE :like", like=f"{key}-%") == [(1,)]


def test_sticky_units_asked_at_once_get_one_assignment(workers: Server, stored: Rows, key: str) -> None:
    """Twelve clients ask for the same five units: five assignments, each handed to all."""
    with JsonClient(workers.url) as wire:
        wire.create(key, arms=arms(3), sticky=True)
    answers = at_once(workers.url, 12, lambda wire, _: [wire.ask(key, f"unit-{unit}")["id"] for unit in range(5)])
    assert len({tuple(ids) for ids in answers}) == 1
    assert len(stored.assignments_of(key)) == 5


def test_one_reward_told_at_once_counts_once(workers: Server, stored: Rows, key: str) -> None:
    """Of two contradicting values one wins for all; the same value is 200 for everyone."""
    with JsonClient(workers.url) as wire:
        wire.create(key, arms=arms(2))
        asked = wire.ask(key)["id"]
    path = f"/v1/experiments/{key}/assignments/{asked}/reward"
    replies = at_once(workers.url, 12, lambda wire, client: wire.send("POST", path, {"reward": client % 2}))
    assert Counter(reply.status for reply in replies) == {200: 6, 409: 6}
    assert len({reply.body["reward"] for reply in replies if reply.status == 200}) == 1
    assert sum(observations for _, _, observations, _ in stored.arms_of(key)) == 1
