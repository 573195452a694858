"""How a group is gathered from the queue, and what one request is told."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from service.domain.callers import SERVICE, Scope
from service.domain.lookups import LookupRequest, NotLookedUp
from service.engine import queue
from service.engine.ledger import Ledger
from service.engine.queue import DefectiveRequest, FutureRecipient, QueuedRequest, decide, fill
from service.errors import ExperimentNotFound, RewardConflict
from testing.ledgers import new_ledger


@dataclass(frozen=True)
class Weighed:
    """A command of some weight that comes to what it was made with."""

    weight: int = 1
    outcome: Exception | str = "done"
    scope: ClassVar[Scope] = "assign"
    by_unit: ClassVar[bool] = False

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """Nothing."""

    def apply(self, ledger: Ledger, now: int) -> str:  # noqa: ARG002 - as every command
        """The outcome."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def _queued(key: str, command: Weighed) -> QueuedRequest[Any]:
    return QueuedRequest(SERVICE, key, command, FutureRecipient(loop=asyncio.get_running_loop()))


async def _taken(weights: list[int], *, before: int = 0, keys: set[str] | None = None, names: str = "") -> list[int]:
    """The weights that `fill` moves into an empty group that has some weight already."""
    waiting = deque(_queued(name, Weighed(weight)) for name, weight in zip(names or "e" * len(weights), weights, strict=True))
    group: list[QueuedRequest[Any]] = []
    fill(group, waiting, before, keys)
    assert [one.command.weight for one in [*group, *waiting]] == weights  # none is lost, and their order stays
    return [one.command.weight for one in group]


def test_a_group_is_bounded_in_requests_and_in_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is heavier than a group may be is a group by itself: it would wait for ever."""
    monkeypatch.setattr(queue, "LARGEST_GROUP", 3)
    monkeypatch.setattr(queue, "LARGEST_WEIGHT", 10)
    assert asyncio.run(_taken([1, 1, 1, 1])) == [1, 1, 1]
    assert asyncio.run(_taken([5, 5, 1])) == [5, 5]
    assert asyncio.run(_taken([99, 1])) == [99]
    assert asyncio.run(_taken([1, 99])) == [1]


def test_only_the_head_of_the_queue_joins_those_who_wait_for_a_lock() -> None:
    """Nobody overtakes a request for another experiment, which waits for a turn of its own."""
    assert asyncio.run(_taken([1, 2, 3, 4], keys={"a"}, names="aaba")) == [1, 2]
    assert asyncio.run(_taken([1, 2], keys={"a"}, names="ba")) == []


def test_a_request_is_answered_once() -> None:
    """With its result, its refusal or a failure, whichever comes first; whoever has gone is told nothing."""

    async def answers() -> list[Any]:
        done, refused, failed, gone = (_queued("e", Weighed()) for _ in range(4))
        done.result, refused.result, gone.result = "done", RewardConflict("no"), "unheard"
        failed.fail(RuntimeError("lost"))
        failed.result = "late"
        gone.recipient.cancel()  # type: ignore[attr-defined]
        for one in (done, refused, failed, gone):
            one.deliver()
            one.deliver()
        return await asyncio.gather(*(one.recipient for one in (done, refused, failed, gone)), return_exceptions=True)  # type: ignore[call-overload,no-any-return]

    done, refused, failed, gone = asyncio.run(answers())
    assert done == "done"
    assert isinstance(refused, RewardConflict)
    assert isinstance(failed, RuntimeError)
    assert isinstance(gone, asyncio.CancelledError)


def test_a_refusal_is_its_own_result_and_a_defect_is_named() -> None:
    """Without the lock a defect may come of a ledger that is too old, so the group is decided again; under it, it is ours."""

    async def decided() -> None:
        held = {"e": new_ledger()}
        group = [_queued("e", Weighed(outcome=RewardConflict("no"))), _queued("gone", Weighed()), _queued("e", Weighed())]
        decide(group, held, 0, under_lock=False)
        assert [type(one.result) for one in group] == [RewardConflict, ExperimentNotFound, str]
        defective = _queued("e", Weighed(outcome=ValueError("ours")))
        with pytest.raises(NotLookedUp):
            decide([defective], held, 0, under_lock=False)
        with pytest.raises(DefectiveRequest) as raised:
            decide([defective], held, 0, under_lock=True)
        assert raised.value.request is defective

    asyncio.run(decided())
