"""One idempotency key, one answer: whichever worker gets it first, whether it draws or not."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from service.application.commands.arms import ChangeArm
from service.application.commands.ask import Ask, AskAnswer
from service.application.commands.experiments import Described, Patch
from service.application.commands.lifecycle import LifecycleMove
from service.domain.callers import by_service
from service.errors import IdempotencyKeyReused, VersionConflict
from testing.workers import Workers

_ROUNDS = 25


@pytest.mark.parametrize("unit", ["known", "new"])
def test_a_known_and_a_new_unit_cannot_share_a_key(workers: Workers, key: str, unit: str) -> None:
    """One of both takes it, on any of two workers at once, in either order; all others with another unit are refused."""
    workers.create(key, [("a", 0.0), ("b", 0.0)], sticky=True)
    workers.submit(key, Ask("known"))
    for number in range(_ROUNDS):
        fresh, used = f"new-{number}", f"key-{number}"
        units = ["known", fresh] if unit == "known" else [fresh, "known"]

        async def race(units: list[str] = units, used: str = used) -> list[AskAnswer | BaseException]:
            asked = [
                workers.contexts[worker].writer.submit(by_service(key), Ask(name, used))
                for worker in (0, 1)
                for name in (units if worker else reversed(units))
            ]
            return await asyncio.gather(*asked, return_exceptions=True)

        answers = workers.run(race())
        given = [answer for answer in answers if isinstance(answer, AskAnswer)]
        assert len({answer.unit for answer in given}) == 1, answers
        assert Counter(map(type, answers)) == {AskAnswer: 2, IdempotencyKeyReused: 2}
        assert sum(not answer.replayed for answer in given) == 1
    assert workers.replay(key) > 1


def test_asks_that_race_a_conclusion_have_one_answer_a_key(workers: Workers, key: str) -> None:
    """Drawn before it or answered after it: the same key on the other worker gives the same arm and draw."""
    for number in range(_ROUNDS):
        name = f"{key}-{number}"
        workers.create(name, [("a", 0.0), ("b", 0.0)])

        async def race(name: str = name) -> list[AskAnswer]:
            first, second = (context.writer for context in workers.contexts)
            asked = [writer.submit(by_service(name), Ask("u", "one")) for writer in (first, second)]
            ended = asyncio.create_task(first.submit(by_service(name), LifecycleMove("conclude", "b")))
            asked += [writer.submit(by_service(name), Ask("u", "one")) for writer in (first, second)]
            answers = await asyncio.gather(*asked)
            await ended
            return answers

        told = {
            (answer.arm.key, answer.created, None if answer.assignment is None else answer.assignment.draw)
            for answer in workers.run(race())
        }
        assert len(told) == 1, told


def test_of_changes_on_one_condition_one_is_made(workers: Workers, key: str) -> None:
    """Ten patches on two workers that all saw the same name: the first wins, the others learn of it."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])

    def unnamed(described: Described) -> bool:
        return described[0].experiment.name == key

    async def race() -> list[object]:
        patches = [Patch({"name": f"by {number}"}, unnamed) for number in range(10)]
        names = [ChangeArm("a", {"name": f"by {number}"}, lambda _, arm: arm.name == "a") for number in range(10)]
        changes: list[Any] = [*patches, *names]
        asked = [workers.contexts[place % 2].writer.submit(by_service(key), change) for place, change in enumerate(changes)]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    refused = Counter(type(answer) is VersionConflict for answer in workers.run(race()))
    assert refused == {True: 18, False: 2}
