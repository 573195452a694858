"""The writer: one queue and one transaction at a time per process, shared by whatever requests have arrived meanwhile.

No timer: the next group is what was queued while the last one was committing, so a lone request waits for nobody and a
thousand share one commit. Every request is answered only after its transaction is durable. A request that is refused is its own
result and leaves no trace; the rest of its group goes on.

A group is decided from what this process knows and written under the condition that the experiments' versions are still the same
(docs/decisions/0002). Where another worker writes the same experiment, its row is locked first. While a group is on its way to
the disk the next one is decided (service/application/ahead.py).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog

from service.application import metrics
from service.application.ahead import Ahead, take_back
from service.application.contention import Contention
from service.application.ledgers import Ledgers
from service.application.waiting import (
    UNDECIDED,
    Asker,
    Command,
    Faulty,
    Queue,
    Result,
    Waiting,
    decide,
    fill,
    look_up,
    need_nothing,
    prepare_answers,
)
from service.errors import DatabaseUnavailable, Overloaded, WriteRefused
from service.storage import journal
from service.storage.lookups import Found, NotLookedUp

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.application.ledger import Ledger
    from service.domain import Changes
    from service.storage.database import Database
    from service.storage.groups import Guard

_ATTEMPTS = 3
_RETRY_SECONDS = 0.05

log = structlog.get_logger(__name__)


def now_microseconds() -> int:
    """The wall clock, in the unit that is stored."""
    return time.time_ns() // 1_000


class Writer:
    """Serves commands from a bounded queue until it is closed."""

    def __init__(self, database: Database, *, queue_limit: int, clock: Callable[[], int] = now_microseconds) -> None:
        self._database = database
        self._clock = clock
        self._queue: Queue = deque()
        self._queue_limit = queue_limit
        self._arrival: asyncio.Future[None] | None = None
        """What the writer waits for when there is nothing to do."""
        self._closing: asyncio.Future[None] | None = None
        self._shown_depth = -1
        self._ledgers = Ledgers()
        self._contention = Contention()
        self._ahead = Ahead(database, self._queue, self._ledgers, self._contention, clock)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin serving."""
        self._loop, self._closing = asyncio.get_running_loop(), None
        self._task = asyncio.create_task(self._serve(), name="writer")

    async def close(self) -> None:
        """Finish what is queued, then stop."""
        task, self._task = self._task, None
        if task is None:
            return
        if self._arrival is None:
            self._closing = self._loop.create_future()
            await self._closing
        self._arrival = None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def submit(self, key: str, command: Command[Result]) -> Result:
        """Queue a command for the experiment with this key; returns when its effect is durable."""
        answer: asyncio.Future[Result] = self._loop.create_future()
        self.enqueue(key, command, answer, left=answer.done)
        return await answer

    def enqueue(
        self,
        key: str,
        command: Command[Result],
        asker: Asker[Result],
        *,
        left: Callable[[], bool] | None = None,
        prepare: Callable[[Any], object] | None = None,
    ) -> None:
        """The same, for whoever waits in another way, and may leave, or can put the answer into words beforehand."""
        queue, arrival = self._queue, self._arrival
        if len(queue) + len(self._ahead.decided) >= self._queue_limit:
            raise Overloaded("Too many requests are waiting; try again in a moment.")
        queue.append(Waiting(key, command, asker, left, prepare))
        if arrival is not None:
            self._arrival = None
            arrival.set_result(None)
        elif len(queue) == 1:
            self._ahead.notice()

    async def _serve(self) -> None:
        while True:
            if not self._queue and not self._ahead.decided:
                self._arrival = arrival = self._loop.create_future()
                if self._closing is not None and not self._closing.done():
                    self._closing.set_result(None)
                await arrival
            if self._ahead.looking:
                await self._ahead.looked()
            group, weight = self._ahead.take()
            fill(group, self._queue, weight)
            if len(self._queue) != self._shown_depth:
                self._shown_depth = len(self._queue)
                self._loop.call_soon(metrics.group_taken, self._shown_depth)  # once the group is on its way
            if not await self._served(group):
                for waiting in group:  # so that one request that cannot be written harms no other
                    await self._served([waiting], others_may_join=False)
                    self._ahead.take_back()  # the next of them knows nothing of what was decided meanwhile

    async def _served(self, group: list[Waiting[Any]], *, others_may_join: bool = True) -> bool:
        """Answer them all, be it with a failure; False if the database refused to write one of several."""
        try:
            await self._answer(group, others_may_join=others_may_join)
        except Exception as unexpected:
            self._start_over(group)
            if isinstance(unexpected, WriteRefused) and len(group) > 1:
                return False
            log.exception("a group failed", requests=len(group))
            for waiting in group:
                waiting.fail(unexpected)
        return True

    async def _answer(self, requests: list[Waiting[Any]], *, others_may_join: bool) -> None:
        """Serve the group in one transaction; after a lost connection find out whether it took effect, else try again."""
        for attempt in range(1, _ATTEMPTS + 1):
            # Nobody waits for these any more, and nothing was decided for them yet.
            requests[:] = [waiting for waiting in requests if waiting.result is not UNDECIDED or not waiting.is_over()]
            changed: list[Changes] = []
            began = time.perf_counter()
            try:
                await self._commit(requests, changed, others_may_join=others_may_join)
            except Faulty as faulty:
                # It fails alone, the others are served anew from what is stored.
                self._start_over(requests)
                faulty.waiting.fail(faulty.fault)
                return await self._answer(requests, others_may_join=others_may_join)
            except DatabaseUnavailable as lost:
                metrics.group_lost()
                if not await self._took_effect(changed):
                    self._start_over(requests)
                    if attempt == _ATTEMPTS:
                        for waiting in requests:
                            waiting.fail(lost)
                        return None
                    await asyncio.sleep(_RETRY_SECONDS * attempt)
                    continue
                self._ledgers.forget_all()
            for waiting in requests:
                waiting.give()
            # After the answers, which are on their way by then.
            self._loop.call_soon(metrics.group_done, len(requests), time.perf_counter() - began, changed)
            return None
        return None

    async def _took_effect(self, changed: list[Changes]) -> bool:
        """Look for the group's own rows on a new connection."""
        return bool(changed) and await journal.is_written(self._database.groups, changed)

    def _start_over(self, requests: list[Waiting[Any]]) -> None:
        """Something went wrong: what is stored is all that counts."""
        take_back(requests, self._ledgers)
        self._ledgers.forget_all()

    async def _commit(self, requests: list[Waiting[Any]], changed: list[Changes], *, others_may_join: bool) -> None:
        """Decide from memory and write if nobody was faster; where somebody was, or lately has been, take the lock first."""
        groups, keys = self._database.groups, {waiting.key for waiting in requests}
        guard: Guard = []
        if not self._contention.until or not self._contention.is_in(*keys):
            known = self._ledgers.known(keys)
            if len(known) < len(keys):
                known |= await self._ledgers.read(groups, keys.difference(known))
            guard = sorted([(ledger.experiment.id, ledger.stored_version) for ledger in known.values()])
            try:
                undecided = [waiting for waiting in requests if waiting.result is UNDECIDED]
                if not need_nothing(undecided, known):
                    await look_up(groups, undecided, known, under_lock=False)
                decide(undecided, known, self._clock(), under_lock=False)
                self._loop.call_soon(prepare_answers, requests)
                if await self._written(guard, known, changed):
                    return
            except NotLookedUp:
                pass
            self._ledgers.forget(keys)  # what was decided in memory never happened
            changed.clear()
        take_back(requests, self._ledgers)
        async with groups.group() as group:
            locked = await journal.lock(group, list(keys))
            self._contention.notice(locked, dict(guard))
            current = await self._ledgers.refreshed(group, locked)
            if others_may_join:
                # Whoever came for the same experiments while we waited for the lock is served with us: turns are dear.
                fill(requests, self._queue, sum(waiting.command.weight for waiting in requests), keys)
            await look_up(group, requests, current, under_lock=True)
            decide(requests, current, self._clock(), under_lock=True)
            self._hand_over(current, changed)
            if changed:
                await group.write(journal.stages_of(changed))

    async def _written(self, guard: Guard, ledgers: dict[str, Ledger], changed: list[Changes]) -> bool:
        """Write what was decided, if nobody was faster; meanwhile the next group is decided."""
        written = False
        self._ahead.begin(self._hand_over(ledgers, changed))
        try:
            written = await journal.write_if(self._database.groups, guard, changed)
        finally:
            self._ahead.end(well=written)
        return written

    def _hand_over(self, ledgers: dict[str, Ledger], changed: list[Changes]) -> dict[Ledger, Found]:
        """All changes of these ledgers; returns what their requests saw and did."""
        seen = {}
        for ledger in ledgers.values():
            changes = ledger.hand_over()
            changed += [changes] if changes else []
            seen[ledger], ledger.found = ledger.found, Found()
        self._ledgers.trim(ledgers.values())
        return seen
