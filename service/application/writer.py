"""The writer: one queue and one transaction at a time per process, shared by whatever requests have arrived meanwhile.

No timer: the next group is what was queued while the last one was committing, so a lone request waits for nobody and a
thousand share one commit. Every request is answered only after its transaction is durable. A request that is refused is its own
result and leaves no trace; the rest of its group goes on.

A group is decided from what this process knows and written under the condition that the experiments' versions are still the same
(docs/decisions/0002). Where another worker writes the same experiment, its row is locked first.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import structlog

from service.application import metrics
from service.application.ledger import Ledger
from service.errors import BestArmError, DatabaseUnavailable, ExperimentNotFound, Overloaded, WriteRefused
from service.storage import journal
from service.storage.journal import NotLookedUp, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain import Changes, Progress
    from service.storage.database import Database
    from service.storage.groups import Reads

Result = TypeVar("Result", covariant=True)  # noqa: PLC0105 - reads better in the protocol below

# A group is bounded so that its transaction stays short; batch requests count with all their items.
_LARGEST_GROUP = 512
_LARGEST_WEIGHT = 10_000
# Ledgers kept in memory; the least recently used is dropped first.
_LEDGERS = 1_024
# Draws kept in memory over all ledgers, some 30 MB.
_RECENT_DRAWS = 65_536
_ATTEMPTS = 3
_RETRY_SECONDS = 0.05
# How long an experiment that another worker writes, too, is decided under its lock.
_CONTENDED_SECONDS = 1.0

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


@dataclass(slots=True)
class _Decided:
    """What a group comes to."""

    answers: list[tuple[_Waiting[Any], Any]] = field(default_factory=list)
    changed: list[Changes] = field(default_factory=list)


class _Faulty(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, waiting: _Waiting[Any], fault: Exception) -> None:
        self.waiting = waiting
        self.fault = fault


class Writer:
    """Serves commands from a bounded queue until it is closed."""

    def __init__(self, database: Database, *, queue_limit: int, clock: Callable[[], int] = now_microseconds) -> None:
        self._database = database
        self._clock = clock
        self._queue: deque[_Waiting[Any]] = deque()
        self._queue_limit = queue_limit
        self._arrival = asyncio.Event()
        self._idle = asyncio.Event()
        self._ledgers: dict[str, Ledger] = {}
        self._contended_until: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin serving."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._serve(), name="writer")

    async def close(self) -> None:
        """Finish what is queued, then stop."""
        await self._idle.wait()
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def submit(self, key: str, command: Command[Result]) -> Result:
        """Queue a command for the experiment with this key; returns when its effect is durable."""
        return await self.enqueue(key, command)

    def enqueue(self, key: str, command: Command[Result]) -> asyncio.Future[Result]:
        """The same, without a coroutine of its own."""
        if len(self._queue) >= self._queue_limit:
            raise Overloaded("Too many requests are waiting; try again in a moment.")
        answer: asyncio.Future[Result] = self._loop.create_future()
        self._queue.append(_Waiting(key, command, answer))
        self._idle.clear()
        self._arrival.set()
        return answer

    async def _serve(self) -> None:
        while True:
            if not self._queue:
                self._idle.set()
                self._arrival.clear()
                await self._arrival.wait()
            group = self._next_group()
            if not await self._served(group):
                for waiting in group:  # so that one request that cannot be written harms no other
                    await self._served([waiting])

    async def _served(self, group: list[_Waiting[Any]]) -> bool:
        """Answer them all, be it with a failure; False if the database refused to write one of several."""
        try:
            await self._answer(group)
        except Exception as unexpected:
            self._ledgers.clear()
            if isinstance(unexpected, WriteRefused) and len(group) > 1:
                return False
            log.exception("a group failed", requests=len(group))
            for waiting in group:
                _fail(waiting, unexpected)
        return True

    def _next_group(self) -> list[_Waiting[Any]]:
        queue = self._queue
        group = [queue.popleft()]
        weight = group[0].command.weight
        while queue and len(group) < _LARGEST_GROUP:
            weight += queue[0].command.weight
            if weight > _LARGEST_WEIGHT:
                break
            group.append(queue.popleft())
        metrics.group_taken(len(queue))
        return group

    async def _answer(self, requests: list[_Waiting[Any]]) -> None:
        """Serve the group in one transaction; after a lost connection find out whether it took effect, else try again."""
        for attempt in range(1, _ATTEMPTS + 1):
            requests[:] = [waiting for waiting in requests if not waiting.answer.done()]
            decided = _Decided()
            began = time.perf_counter()
            try:
                await self._commit(requests, decided)
            except _Faulty as faulty:
                # A defect of ours in one request: it fails alone, the others are served anew from what is stored.
                self._ledgers.clear()
                _fail(faulty.waiting, faulty.fault)
                return await self._answer(requests)
            except DatabaseUnavailable as lost:
                metrics.group_lost()
                self._ledgers.clear()
                if not await self._took_effect(decided.changed):
                    if attempt == _ATTEMPTS:
                        for waiting in requests:
                            _fail(waiting, lost)
                        return None
                    await asyncio.sleep(_RETRY_SECONDS * attempt)
                    continue
            metrics.group_done(len(decided.answers), time.perf_counter() - began, decided.changed)
            for waiting, result in decided.answers:
                if isinstance(result, BestArmError):
                    _fail(waiting, result)
                elif not waiting.answer.done():
                    waiting.answer.set_result(result)
            return None
        return None

    async def _took_effect(self, changed: list[Changes]) -> bool:
        """Look for the group's own rows on a new connection."""
        return bool(changed) and await journal.is_written(self._database.groups, changed)

    async def _commit(self, requests: list[_Waiting[Any]], decided: _Decided) -> None:
        """Decide from memory and write if nobody was faster; where somebody was, or lately has been, take the lock first."""
        groups, keys = self._database.groups, {waiting.key for waiting in requests}
        if not self._contended(keys):
            known = await self._known(keys)
            versions = sorted((ledger.experiment.id, ledger.version) for ledger in known.values())
            try:
                await self._decide(groups, requests, known, decided, under_lock=False)
                if await journal.write_if(groups, versions, decided.changed):
                    return
                self._expect_others(keys)
            except NotLookedUp:
                pass
            decided.changed = []  # what was decided in memory never happened
            for key in keys:
                self._ledgers.pop(key, None)
        async with groups.group() as group:
            locked = await journal.lock(group, list(keys))
            current = await self._refreshed(group, locked)
            self._let_join(requests, keys)
            await self._decide(group, requests, current, decided, under_lock=True)
            if decided.changed:
                await group.write(journal.stages_of(decided.changed))

    async def _decide(
        self, source: Reads, requests: list[_Waiting[Any]], ledgers: dict[str, Ledger], decided: _Decided, *, under_lock: bool
    ) -> None:
        """Look up what is asked for, and decide one request after the other in memory."""
        wanted = {ledger.experiment.id: Wanted() for ledger in ledgers.values()}
        for waiting in requests:
            ledger = ledgers.get(waiting.key)
            if ledger:
                waiting.command.want(wanted[ledger.experiment.id], ledger)
        seen = await journal.look_up(source, wanted, under_lock=under_lock)
        for ledger in ledgers.values():
            ledger.found = seen[ledger.experiment.id]

        now = self._clock()
        decided.answers.clear()
        for waiting in requests:
            ledger = ledgers.get(waiting.key)
            try:
                result = ExperimentNotFound(waiting.key) if ledger is None else waiting.command.apply(ledger, now)
            except BestArmError as refused:
                result = refused
            except NotLookedUp:
                raise
            except Exception as fault:
                raise _Faulty(waiting, fault) from fault
            decided.answers.append((waiting, result))
        decided.changed = [changes for ledger in ledgers.values() if (changes := ledger.hand_over())]

    async def _known(self, keys: set[str]) -> dict[str, Ledger]:
        """The ledgers as this process last saw them; those that it never did are read."""
        known = {key: self._keep(key, self._ledgers[key]) for key in keys if key in self._ledgers}
        unknown = keys.difference(known)
        if unknown:
            known |= await self._refreshed(self._database.groups, await journal.find(self._database.groups, list(unknown)))
        return known

    async def _refreshed(self, source: Reads, found: dict[str, Progress]) -> dict[str, Ledger]:
        """The ledgers of these experiments, brought up to what is stored."""
        held = {key: self._ledgers.get(key) for key in found}
        behind: dict[int, int] = {}
        for key, progress in found.items():
            ledger = held[key]
            if ledger is None or ledger.version != progress.version:
                metrics.ledger_read(known=ledger is not None)
                behind[progress.experiment.id] = -1 if ledger is None else ledger.version
        moved = await journal.arms_since(source, behind) if behind else {}
        current = {}
        for key, progress in found.items():
            ledger = held[key]
            if ledger is None:
                ledger = Ledger(progress, moved[progress.experiment.id])
            elif progress.experiment.id in moved:
                ledger.refresh(progress, moved[progress.experiment.id])
            current[key] = self._keep(key, ledger)
        return current

    def _let_join(self, requests: list[_Waiting[Any]], keys: set[str]) -> None:
        """Whoever came for the same experiments while we waited for the lock is served with us: turns are dear."""
        weight = sum(waiting.command.weight for waiting in requests)
        while self._queue and self._queue[0].key in keys and len(requests) < _LARGEST_GROUP:
            weight += self._queue[0].command.weight
            if weight > _LARGEST_WEIGHT:
                break
            requests.append(self._queue.popleft())

    def _keep(self, key: str, ledger: Ledger) -> Ledger:
        self._ledgers.pop(key, None)
        self._ledgers[key] = ledger
        ledger.remember(_RECENT_DRAWS // len(self._ledgers))
        if len(self._ledgers) > _LEDGERS:
            del self._ledgers[next(iter(self._ledgers))]
        return ledger

    def _contended(self, keys: set[str]) -> bool:
        """Has another worker been faster in one of these a moment ago?"""
        if not self._contended_until:
            return False
        now = time.monotonic()
        self._contended_until = {key: until for key, until in self._contended_until.items() if until > now}
        return not self._contended_until.keys().isdisjoint(keys)

    def _expect_others(self, keys: set[str]) -> None:
        """Another worker was faster, and may well be so again: use the lock for a while."""
        metrics.group_outrun()
        self._contended_until |= dict.fromkeys(keys, time.monotonic() + _CONTENDED_SECONDS)


def _fail(waiting: _Waiting[Any], failure: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(failure)
