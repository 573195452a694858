"""The writer: one queue and one transaction at a time per process, shared by whatever requests have arrived meanwhile.

No timer: the next group is what was queued while the last one was committing, so a lone request waits for nobody and a
thousand share one commit. Every request is answered only after its transaction is durable. A request that is refused is its own
result and leaves no trace; the rest of its group goes on.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import structlog

from service.application import metrics
from service.application.ledger import Ledger
from service.errors import BestArmError, DatabaseUnavailable, ExperimentNotFound, Overloaded
from service.storage import journal
from service.storage.journal import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain import Changes
    from service.storage.database import Database
    from service.storage.groups import Group

Result = TypeVar("Result", covariant=True)  # noqa: PLC0105 - reads better in the protocol below

# A group is bounded so that its transaction stays short; batch requests count with all their items.
_LARGEST_GROUP = 512
_LARGEST_WEIGHT = 10_000
# Ledgers kept in memory; the least recently used is dropped first.
_LEDGERS = 1_024
_ATTEMPTS = 3
_RETRY_SECONDS = 0.05

log = structlog.get_logger(__name__)


def now_microseconds() -> int:
    """The wall clock, in the unit that is stored."""
    return time.time_ns() // 1_000


class Command(Protocol[Result]):
    """One request that may change one experiment."""

    @property
    def weight(self) -> int:
        """How many single requests it stands for."""
        ...

    def want(self, wanted: Wanted, ledger: Ledger) -> None:
        """Say what must be looked up before it can be decided."""
        ...

    def apply(self, ledger: Ledger, now: int) -> Result:
        """Decide and change the ledger. A refusal is raised before anything was changed."""
        ...


@dataclass(slots=True)
class _Waiting(Generic[Result]):
    key: str
    command: Command[Result]
    answer: asyncio.Future[Result]


class _Faulty(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, waiting: _Waiting[Any], fault: Exception) -> None:
        self.waiting = waiting
        self.fault = fault


class Writer:
    """Serves commands from a bounded queue until it is closed."""

    def __init__(self, database: Database, *, queue_limit: int, clock: Callable[[], int] = now_microseconds) -> None:
        self._database = database
        self._clock = clock
        self._queue: asyncio.Queue[_Waiting[Any]] = asyncio.Queue(queue_limit)
        self._held_back: _Waiting[Any] | None = None
        self._ledgers: dict[int, Ledger] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin serving."""
        self._task = asyncio.create_task(self._serve(), name="writer")

    async def close(self) -> None:
        """Finish what is queued, then stop."""
        await self._queue.join()
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def submit(self, key: str, command: Command[Result]) -> Result:
        """Queue a command for the experiment with this key; returns when its effect is durable."""
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait(_Waiting(key, command, answer))
        except asyncio.QueueFull as full:
            raise Overloaded("Too many requests are waiting; try again in a moment.") from full
        return await answer

    async def _serve(self) -> None:
        while True:
            group = await self._next_group()
            try:
                await self._answer(group)
            except Exception as unexpected:
                log.exception("a group failed", requests=len(group))
                self._ledgers.clear()
                for waiting in group:
                    _fail(waiting, unexpected)
            finally:
                for _ in group:
                    self._queue.task_done()

    async def _next_group(self) -> list[_Waiting[Any]]:
        first = self._held_back or await self._queue.get()
        self._held_back = None
        group, weight = [first], first.command.weight
        while len(group) < _LARGEST_GROUP and not self._queue.empty():
            waiting = self._queue.get_nowait()
            weight += waiting.command.weight
            if weight > _LARGEST_WEIGHT:
                self._held_back = waiting
                break
            group.append(waiting)
        metrics.group_taken(self._queue.qsize() + (self._held_back is not None))
        return group

    async def _answer(self, requests: list[_Waiting[Any]]) -> None:
        """Serve the group in one transaction; after a lost connection find out whether it took effect, else try again."""
        for attempt in range(1, _ATTEMPTS + 1):
            alive = [waiting for waiting in requests if not waiting.answer.done()]
            answers: list[tuple[_Waiting[Any], Any]] = []
            changed: list[Changes] = []
            began = time.perf_counter()
            try:
                async with self._database.groups.group() as group:
                    answers, changed = await self._decide(group, alive)
                    await journal.write(group, changed)
            except _Faulty as faulty:
                # A defect of ours in one request: it fails alone, the others are served anew from what is stored.
                self._ledgers.clear()
                _fail(faulty.waiting, faulty.fault)
                return await self._answer(requests)
            except DatabaseUnavailable as lost:
                metrics.group_lost()
                self._ledgers.clear()
                if not await self._took_effect(changed):
                    if attempt == _ATTEMPTS:
                        for waiting in alive:
                            _fail(waiting, lost)
                        return None
                    await asyncio.sleep(_RETRY_SECONDS * attempt)
                    continue
            metrics.group_done(len(answers), time.perf_counter() - began, changed)
            for waiting, result in answers:
                if isinstance(result, BestArmError):
                    _fail(waiting, result)
                elif not waiting.answer.done():
                    waiting.answer.set_result(result)
            return None
        return None

    async def _took_effect(self, changed: list[Changes]) -> bool:
        """Look for the group's own rows on a new connection."""
        if not changed:
            return False
        async with self._database.groups.group() as group:
            return await journal.is_written(group, changed[0])

    async def _decide(self, group: Group, requests: list[_Waiting[Any]]) -> tuple[list[tuple[_Waiting[Any], Any]], list[Changes]]:
        """Lock, look up, and decide one request after the other in memory."""
        locked = await journal.lock(group, list({waiting.key for waiting in requests}))
        ledgers = {key: await self._ledger(group, *found) for key, found in locked.items()}
        wanted = {experiment_id: Wanted() for experiment_id, _ in locked.values()}
        for waiting in requests:
            if waiting.key in locked:
                waiting.command.want(wanted[locked[waiting.key][0]], ledgers[waiting.key])
        seen = await journal.look_up(group, wanted)
        for key, (experiment_id, _) in locked.items():
            ledgers[key].found = seen[experiment_id]

        now = self._clock()
        answers: list[tuple[_Waiting[Any], Any]] = []
        for waiting in requests:
            ledger = ledgers.get(waiting.key)
            try:
                result = ledger and waiting.command.apply(ledger, now)
            except BestArmError as refused:
                result = refused
            except Exception as fault:
                raise _Faulty(waiting, fault) from fault
            answers.append((waiting, ExperimentNotFound(waiting.key) if ledger is None else result))
        return answers, [changes for ledger in ledgers.values() if (changes := ledger.hand_over())]

    async def _ledger(self, group: Group, experiment_id: int, version: int) -> Ledger:
        """The ledger of a locked experiment, brought up to its version."""
        ledger = self._ledgers.pop(experiment_id, None)
        if ledger is None:
            metrics.ledger_read(known=False)
            ledger = Ledger(*await journal.load(group, experiment_id))
        elif ledger.version != version:
            metrics.ledger_read(known=True)
            ledger.refresh(*await journal.load(group, experiment_id, since=ledger.version))
        self._ledgers[experiment_id] = ledger
        if len(self._ledgers) > _LEDGERS:
            del self._ledgers[next(iter(self._ledgers))]
        return ledger


def _fail(waiting: _Waiting[Any], failure: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(failure)
