"""The writer: one queue and one transaction at a time per process, shared by whatever requests have arrived meanwhile.

No timer: the next group is what was queued while the last one was committing, so a lone request waits for nobody and a
thousand share one commit. Every request is answered only after its transaction is durable. A request that is refused is its own
result and leaves no trace; the rest of its group goes on.

A group is decided from what this process knows and written under the condition that the experiments' versions are still the same
(docs/decisions/0002). Where another worker writes the same experiment, its row is locked first. While a group is on its way to
the disk, what arrives is decided ahead, as if the group were durable already; if it fails, that is decided again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import structlog

from service.application import metrics
from service.application.ledgers import Ledgers
from service.errors import BestArmError, DatabaseUnavailable, ExperimentNotFound, Overloaded, WriteRefused
from service.storage import journal
from service.storage.journal import Found, NotLookedUp, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from service.application.ledger import Ledger
    from service.domain import Changes, Progress
    from service.storage.database import Database
    from service.storage.groups import Guard, Reads

Result = TypeVar("Result", covariant=True)  # noqa: PLC0105 - reads better in the protocol below

# A group is bounded so that its transaction stays short; batch requests count with all their items.
_LARGEST_GROUP = 512
_LARGEST_WEIGHT = 10_000
_ATTEMPTS = 3
_RETRY_SECONDS = 0.05
# How long an experiment that another worker writes, too, is decided under its lock.
_CONTENDED_SECONDS = 1.0
# Looking ahead needs a second connection. Where there is none, or a slow one, things go on without it.
_LOOK_AHEAD_SECONDS = 1.0
_LOOK_AHEAD_AGAIN_SECONDS = 10.0
_UNDECIDED: Final = object()

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
    result: Any = _UNDECIDED
    """What it comes to once its group is durable; a refusal, too."""
    looked_up: bool = False
    """Its ledger found all that it wants to see."""


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
        self._ledgers = Ledgers()
        self._contended_until: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None
        # The next group as far as it is decided already, while the last one is on its way.
        self._ahead: list[_Waiting[Any]] = []
        self._ahead_weight = 0
        self._may_decide_ahead = False
        self._wanted_ahead = Wanted()
        self._looking_ahead: asyncio.Task[None] | None = None
        self._on_its_way: dict[Ledger, Found] = {}
        """What the last group saw and did. Whoever reads while it is being written may not see that."""
        self._flying = False
        self._times_taken_back = 0
        self._look_ahead_from = 0.0

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
        if len(self._queue) + len(self._ahead) >= self._queue_limit:
            raise Overloaded("Too many requests are waiting; try again in a moment.")
        answer: asyncio.Future[Result] = self._loop.create_future()
        self._queue.append(_Waiting(key, command, answer))
        if self._may_decide_ahead and len(self._queue) == 1:
            self._loop.call_soon(self._decide_ahead)  # with whatever else arrives in this turn of the loop
        elif not self._arrival.is_set():
            self._idle.clear()
            self._arrival.set()
        return answer

    async def _serve(self) -> None:
        while True:
            if not self._queue and not self._ahead:
                self._idle.set()
                self._arrival.clear()
                await self._arrival.wait()
            if self._looking_ahead:
                await self._wait_for(self._looking_ahead)
            group = self._next_group()
            if not await self._served(group):
                for waiting in group:  # so that one request that cannot be written harms no other
                    await self._served([waiting], others_may_join=False)
                    self._take_back_ahead()  # the next of them knows nothing of what was decided meanwhile

    async def _served(self, group: list[_Waiting[Any]], *, others_may_join: bool = True) -> bool:
        """Answer them all, be it with a failure; False if the database refused to write one of several."""
        try:
            await self._answer(group, others_may_join=others_may_join)
        except Exception as unexpected:
            self._start_over(group)
            if isinstance(unexpected, WriteRefused) and len(group) > 1:
                return False
            log.exception("a group failed", requests=len(group))
            for waiting in group:
                _fail(waiting, unexpected)
        return True

    def _next_group(self) -> list[_Waiting[Any]]:
        """What is decided already, and what else there is."""
        group, weight = self._ahead, self._ahead_weight
        self._ahead, self._ahead_weight = [], 0
        self._fill(group, weight)
        self._loop.call_soon(metrics.group_taken, len(self._queue))  # once the group is on its way
        return group

    def _fill(self, group: list[_Waiting[Any]], weight: int, keys: set[str] | None = None) -> None:
        """From the queue, within the bounds of a group; with keys, only while it is for one of these."""
        queue = self._queue
        while queue and len(group) < _LARGEST_GROUP and (keys is None or queue[0].key in keys):
            weight += queue[0].command.weight
            if weight > _LARGEST_WEIGHT and group:
                break
            group.append(queue.popleft())

    async def _answer(self, requests: list[_Waiting[Any]], *, others_may_join: bool) -> None:
        """Serve the group in one transaction; after a lost connection find out whether it took effect, else try again."""
        for attempt in range(1, _ATTEMPTS + 1):
            # Nobody waits for these any more, and nothing was decided for them yet.
            requests[:] = [waiting for waiting in requests if waiting.result is not _UNDECIDED or not waiting.answer.done()]
            changed: list[Changes] = []
            began = time.perf_counter()
            try:
                await self._commit(requests, changed, others_may_join=others_may_join)
            except _Faulty as faulty:
                # A defect of ours in one request: it fails alone, the others are served anew from what is stored.
                self._start_over(requests)
                _fail(faulty.waiting, faulty.fault)
                return await self._answer(requests, others_may_join=others_may_join)
            except DatabaseUnavailable as lost:
                metrics.group_lost()
                if not await self._took_effect(changed):
                    self._start_over(requests)
                    if attempt == _ATTEMPTS:
                        for waiting in requests:
                            _fail(waiting, lost)
                        return None
                    await asyncio.sleep(_RETRY_SECONDS * attempt)
                    continue
                self._ledgers.forget_all()
            for waiting in requests:
                if isinstance(waiting.result, BestArmError):
                    _fail(waiting, waiting.result)
                elif not waiting.answer.done():
                    waiting.answer.set_result(waiting.result)
            # After the answers, which are on their way by then.
            self._loop.call_soon(metrics.group_done, len(requests), time.perf_counter() - began, changed)
            return None
        return None

    async def _took_effect(self, changed: list[Changes]) -> bool:
        """Look for the group's own rows on a new connection."""
        return bool(changed) and await journal.is_written(self._database.groups, changed)

    async def _commit(self, requests: list[_Waiting[Any]], changed: list[Changes], *, others_may_join: bool) -> None:
        """Decide from memory and write if nobody was faster; where somebody was, or lately has been, take the lock first."""
        groups, keys = self._database.groups, {waiting.key for waiting in requests}
        guard: Guard = []
        if not self._contended(keys):
            known = await self._ledgers.known(groups, keys)
            guard = sorted((ledger.experiment.id, ledger.stored_version) for ledger in known.values())
            try:
                await self._decide(groups, requests, known, changed, under_lock=False)
                if await self._written(guard, changed):
                    return
            except NotLookedUp:
                pass
            self._ledgers.forget(keys)  # what was decided in memory never happened
            changed.clear()
        self._take_back(requests)
        async with groups.group() as group:
            locked = await journal.lock(group, list(keys))
            self._expect_others(locked, dict(guard))
            current = await self._ledgers.refreshed(group, locked)
            if others_may_join:
                # Whoever came for the same experiments while we waited for the lock is served with us: turns are dear.
                self._fill(requests, sum(waiting.command.weight for waiting in requests), keys)
            await self._decide(group, requests, current, changed, under_lock=True)
            if changed:
                await group.write(journal.stages_of(changed))

    async def _written(self, guard: Guard, changed: list[Changes]) -> bool:
        """Write it, if nobody was faster; meanwhile the next group is decided."""
        written = False
        self._flying = self._may_decide_ahead = True
        self._looking_ahead = None
        if self._queue:
            self._loop.call_soon(self._decide_ahead)
        try:
            written = await journal.write_if(self._database.groups, guard, changed)
        finally:
            self._flying = self._may_decide_ahead = False
            if not written:
                self._take_back_ahead()
        return written

    async def _decide(
        self,
        source: Reads,
        requests: list[_Waiting[Any]],
        ledgers: dict[str, Ledger],
        changed: list[Changes],
        *,
        under_lock: bool,
    ) -> None:
        """Look up what is asked for, and decide one request after the other in memory."""
        undecided = [waiting for waiting in requests if waiting.result is _UNDECIDED]
        if undecided:
            await _look_up(source, undecided, ledgers, under_lock=under_lock)
            _apply(undecided, ledgers, self._clock())
        self._on_its_way.clear()
        for ledger in ledgers.values():
            self._on_its_way[ledger], changes = ledger.found, ledger.hand_over()
            ledger.found = Found()
            changed += [changes] if changes else []
        self._ledgers.trim(ledgers.values())

    # -- ahead --------------------------------------------------------------------------------------------------

    def _decide_ahead(self) -> None:
        """Decide the head of the queue as long as that needs nothing but what is in memory."""
        while self._may_decide_ahead and self._queue:
            if self._queue[0].answer.done():  # nobody waits for it any more
                self._queue.popleft()
                continue
            self._may_decide_ahead = self._is_decided_ahead(self._queue[0])
            if self._may_decide_ahead:
                self._ahead.append(self._queue.popleft())

    def _is_decided_ahead(self, waiting: _Waiting[Any]) -> bool:
        ledger, command, wanted = self._ledgers.get(waiting.key), waiting.command, self._wanted_ahead
        weight = self._ahead_weight + command.weight
        if ledger is None or weight > _LARGEST_WEIGHT or len(self._ahead) >= _LARGEST_GROUP or self._contended({waiting.key}):
            return False
        try:
            if not waiting.looked_up:
                command.want(wanted, ledger)
                if not wanted.is_nothing():
                    self._wanted_ahead = Wanted()
                    if time.monotonic() >= self._look_ahead_from:
                        self._looking_ahead = self._loop.create_task(self._look_ahead(self._times_taken_back))
                    return False
                wanted.forget_new()
            waiting.result = command.apply(ledger, self._clock())
        except BestArmError as refused:
            waiting.result = refused
        except NotLookedUp:
            return False
        except Exception:  # noqa: BLE001 - the same happens again when its turn comes, where it is dealt with
            self._ledgers.forget([waiting.key])
            self._take_back_ahead()
            return False
        self._ahead_weight = weight
        return True

    async def _look_ahead(self, taken_back: int) -> None:
        """Read what the head of the queue wants to see while the last group is being written, and go on deciding."""
        try:
            await self._read_ahead(taken_back)
        except Exception as failure:  # noqa: BLE001 - they are looked up, and it is met again, when their turn comes
            self._look_ahead_from = time.monotonic() + _LOOK_AHEAD_AGAIN_SECONDS
            log.warning("looking ahead failed", failure=repr(failure))

    async def _wait_for(self, looking: asyncio.Task[None]) -> None:
        """Until it has looked; but not for a second connection that does not come."""
        done, _ = await asyncio.wait({looking}, timeout=_LOOK_AHEAD_SECONDS)
        if not done:
            self._look_ahead_from = time.monotonic() + _LOOK_AHEAD_AGAIN_SECONDS
            self._times_taken_back += 1
            log.warning("looking ahead takes too long")

    async def _read_ahead(self, taken_back: int) -> None:
        batch: list[_Waiting[Any]] = []
        wanted: dict[Ledger, Wanted] = {}
        weight = self._ahead_weight
        for waiting in islice(self._queue, _LARGEST_GROUP - len(self._ahead)):
            ledger = self._ledgers.get(waiting.key)
            weight += waiting.command.weight
            if ledger is None or weight > _LARGEST_WEIGHT:
                break
            want = wanted.setdefault(ledger, Wanted())
            waiting.command.want(want, ledger)
            if want.due_by is not None:
                return  # what is due depends on the group that is being written
            batch.append(waiting)
        asked = {ledger.experiment.id: want for ledger, want in wanted.items()}
        seen = await journal.look_up(self._database.groups, asked, under_lock=False)
        if taken_back != self._times_taken_back:
            return  # what was read may be older than what the ledgers know now
        for ledger in wanted:
            found = seen[ledger.experiment.id]
            found.update(self._on_its_way.get(ledger) or Found())
            ledger.find(found)
        for waiting in batch:
            waiting.looked_up = True
        self._may_decide_ahead = self._flying
        self._decide_ahead()

    def _take_back_ahead(self) -> None:
        """What the decisions ahead were built on is gone: they are made anew."""
        self._times_taken_back += 1
        self._queue.extendleft(reversed(self._ahead))
        self._ahead, self._ahead_weight = [], 0
        self._take_back(self._queue)

    def _take_back(self, requests: Iterable[_Waiting[Any]]) -> None:
        """Nothing was decided, nothing looked up."""
        for waiting in requests:
            waiting.looked_up = False
            if waiting.result is not _UNDECIDED:
                waiting.result = _UNDECIDED
                self._ledgers.forget([waiting.key])

    def _start_over(self, requests: list[_Waiting[Any]]) -> None:
        """Something went wrong: what is stored is all that counts."""
        self._take_back(requests)
        self._ledgers.forget_all()

    # -- other workers ------------------------------------------------------------------------------------------

    def _contended(self, keys: set[str]) -> bool:
        """Has another worker been faster in one of these a moment ago?"""
        if not self._contended_until:
            return False
        now = time.monotonic()
        self._contended_until = {key: until for key, until in self._contended_until.items() if until > now}
        return not self._contended_until.keys().isdisjoint(keys)

    def _expect_others(self, locked: dict[str, Progress], versions: dict[int, int]) -> None:
        """Where another worker was faster it may well be so again: use the lock for a while."""
        moved = [key for key, found in locked.items() if versions.get(found.experiment.id, found.version) != found.version]
        if moved:
            metrics.group_outrun()
            self._contended_until |= dict.fromkeys(moved, time.monotonic() + _CONTENDED_SECONDS)


def _fail(waiting: _Waiting[Any], failure: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(failure)


async def _look_up(source: Reads, undecided: list[_Waiting[Any]], ledgers: dict[str, Ledger], *, under_lock: bool) -> None:
    wanted: dict[Ledger, Wanted] = {}
    for waiting in undecided:
        ledger = ledgers.get(waiting.key)
        if ledger and not waiting.looked_up:
            want = wanted.get(ledger) or wanted.setdefault(ledger, Wanted())
            waiting.command.want(want, ledger)
    if under_lock or not all(want.is_nothing() for want in wanted.values()):
        seen = await journal.look_up(source, {one.experiment.id: want for one, want in wanted.items()}, under_lock=under_lock)
        for ledger in wanted:
            ledger.find(seen[ledger.experiment.id])


def _apply(undecided: list[_Waiting[Any]], ledgers: dict[str, Ledger], now: int) -> None:
    for waiting in undecided:
        ledger = ledgers.get(waiting.key)
        try:
            waiting.result = ExperimentNotFound(waiting.key) if ledger is None else waiting.command.apply(ledger, now)
        except BestArmError as refused:
            waiting.result = refused
        except NotLookedUp:
            raise
        except Exception as fault:
            raise _Faulty(waiting, fault) from fault
