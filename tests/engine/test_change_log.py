"""A lone draw is not in the row of its arm at once: whoever looks counts it all the same."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from prometheus_client import REGISTRY

from service.application.commands.ask import Ask, AskMany
from service.application.commands.idempotency import Once, OnceCommand
from service.application.commands.tell import RewardItem, Tell, TellMany
from testing.rows import Rows
from testing.workers import Workers

_ARMS = [("a", 0.0), ("b", 0.0), ("c", 0.0)]


@pytest.fixture
def rows(workers: Workers) -> Rows:
    """The workers' database."""
    return Rows(workers.url)


def left_out(rows: Rows, key: str) -> int:
    """How many draws are stored beside the rows of their arms; those and the rows make all."""
    (uncounted,) = rows.query("SELECT uncounted FROM experiments WHERE key = :key", key=key)[0]
    ((counted, draws),) = rows.query(
        "SELECT sum(a.epoch_draws), min(e.draws) FROM arms a JOIN experiments e ON e.id = a.experiment_id WHERE e.key = :key",
        key=key,
    )
    left = len(uncounted.split(",")) if uncounted else 0
    assert counted + left == draws
    return left


def seen(workers: Workers, key: str) -> list[list[int]]:
    """The pending draws of each arm, as each worker tells them."""
    return [[one.pending for one in workers.look(key, worker).standings] for worker in range(2)]


def test_a_lone_draw_is_seen_at_once(workers: Workers, rows: Rows, key: str) -> None:
    """By the worker that drew, by the other one, and by those that come after both."""
    with rows:
        workers.create(key, _ARMS)
        for number in range(1, 6):
            workers.submit(key, Ask(None))
            assert left_out(rows, key) == number
            assert [sum(pending) for pending in seen(workers, key)] == [number, number]
        before = seen(workers, key)
        workers.restart()
        assert seen(workers, key) == before
        answer = workers.submit(key, Ask(None))
        assert answer.assignment is not None
        assert answer.assignment.draw == 6
        assert workers.replay(key) == 7


def test_not_many_are_left_out(workers: Workers, rows: Rows, key: str) -> None:
    """They are counted sooner or later, and with anything else that happens."""
    with rows:
        workers.create(key, _ARMS)
        left = []
        for _ in range(100):
            workers.submit(key, Ask(None))
            left.append(left_out(rows, key))
        assert max(left) <= 16
        assert left.count(0) >= 100 // 17
        while left_out(rows, key) != 3:
            told = workers.submit(key, Ask(None)).assignment
        assert told is not None
        workers.submit(key, Tell(told.id, "reward", 1.0))
        assert left_out(rows, key) == 0
        for commands in ([Ask(None), Ask(None)], [AskMany([None, None], by_count=True)]):
            workers.submit(key, Ask(None))
            assert left_out(rows, key) == 1
            workers.submit_together(key, commands)
            assert left_out(rows, key) == 0


def test_an_answer_that_is_only_kept_leaves_them_where_they_are(workers: Workers, rows: Rows, key: str) -> None:
    """It moves no version, so the other worker does not learn of anything."""
    with rows:
        workers.create(key, _ARMS)
        told = workers.submit(key, Ask(None)).assignment
        assert told is not None
        workers.submit(key, Tell(told.id, "reward", 1.0))
        for _ in range(2):
            workers.submit(key, Ask(None), worker=1)
        again = TellMany([RewardItem(assignment=told.id, reward=1.0)])
        workers.submit(key, OnceCommand(Once("rewards", "key", "hash", creates=False, render=lambda _: b"[]"), again))
        assert rows.query("SELECT count(*) FROM replies WHERE key = 'key'") == [(1,)]
        assert left_out(rows, key) == 2
        workers.submit(key, Ask(None), worker=1)
        assert left_out(rows, key) == 3
    assert workers.replay(key) == 6


def test_events_are_counted_once(workers: Workers, key: str) -> None:
    """Also those that are decided while a draw is on its way."""

    def counted() -> float:
        return REGISTRY.get_sample_value("bestarm_events_total", {"kind": "reward"}) or 0.0

    workers.create(key, _ARMS)
    before = counted()

    async def beside_each_other() -> None:
        answer = await workers.enqueue(key, Ask(None))
        for _ in range(20):
            assert answer.assignment is not None
            following = workers.enqueue(key, Ask(None))
            for _ in range(2):
                await asyncio.sleep(0)
            await workers.enqueue(key, Tell(answer.assignment.id, "reward", 1.0))
            answer = await following
        await asyncio.sleep(0)

    workers.run(beside_each_other())
    assert counted() - before == 20
    assert workers.replay(key) == 42


@pytest.mark.parametrize("seed", range(3))
def test_two_workers_agree_whatever_comes(workers: Workers, rows: Rows, key: str, seed: int) -> None:
    """Lone asks, asks together, rewards, and the same rewards again: each arm's draws are what the assignments say."""
    choose = random.Random(seed)  # noqa: S311 - a dice, no secret
    workers.create(key, _ARMS)
    pending: list[str] = []
    told = ""
    with rows:
        for turn in range(150):
            worker = choose.randrange(2)
            many = choose.choice([1, 1, 1, 1, 3])
            if pending and choose.random() < 0.2:
                told = pending.pop(choose.randrange(len(pending)))
                workers.submit(key, Tell(told, "reward", 1.0), worker)
            elif told and choose.random() < 0.2:
                again = TellMany([RewardItem(assignment=told, reward=1.0)])
                workers.submit(
                    key, OnceCommand(Once("rewards", f"key-{turn}", "hash", creates=False, render=lambda _: b"[]"), again), worker
                )
            else:
                pending += [one.assignment.id for one in workers.submit_together(key, [Ask(None)] * many, worker)]
            if choose.random() < 0.3:
                stored = Counter(arm for _, arm, status, _ in rows.assignments_of(key) if status == "pending")
                by_position = [stored[position] for position in range(3)]
                ranked = [workers.look(key, one).standings for one in range(2)]
                shown = [sorted((one.arm.position, one.pending) for one in standings) for standings in ranked]
                assert shown == [list(enumerate(by_position))] * 2
    assert workers.replay(key) > 150
