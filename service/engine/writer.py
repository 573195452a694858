"""The writer: one queue and one transaction at a time per process, shared by whatever requests have arrived meanwhile.

No timer: the next group is what was queued while the last one was committing, so a lone request waits for nobody and a
thousand share one commit. Every request is answered only after its transaction is durable. A request that is refused is its own
result and leaves no trace; the rest of its group goes on.

A group is decided from what this process knows and written on the condition that the experiments' versions are still the same
(docs/decisions/0002). Where another worker writes the same experiment, its row is locked first. While a group is on its way to
the disk the next one is decided (service/engine/lookahead.py).

A group takes the lock, and is decided again under it, where another worker was faster, where a decision turned out to need a
lookup, and where this worker was outrun a moment ago (`_commit`). After a failure `_start_over` forgets what was decided and what
is remembered, and the group is decided again from what is stored; if it cannot be told whether it was written, it fails.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog

from service.domain.lookups import LookupResult, NotLookedUp
from service.engine import engine_metrics
from service.engine.clock import now_microseconds
from service.engine.contention import Contention
from service.engine.ledger_cache import LedgerCache
from service.engine.lookahead import Lookahead, undecide
from service.engine.queue import (
    UNDECIDED,
    Command,
    DefectiveRequest,
    FutureRecipient,
    LookupProbe,
    Queue,
    QueuedRequest,
    Recipient,
    Result,
    decide,
    fill,
    look_up,
    prepare_answers,
)
from service.errors import DatabaseUnavailable, Overloaded, WriteRefused
from service.storage.groups import writes

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain import Changes
    from service.engine.ledger import Ledger
    from service.storage.database import Database
    from service.storage.groups.statements import Guard

_ATTEMPTS = 3
_RETRY_SECONDS = 0.05

log = structlog.get_logger(__name__)


class Writer:
    """Serves commands from a bounded queue until it is closed."""

    def __init__(self, database: Database, *, queue_limit: int, clock: Callable[[], int] = now_microseconds) -> None:
        self._database = database
        self._clock = clock
        self._queue: Queue = deque()
        self._queue_limit = queue_limit
        self._arrival: asyncio.Future[None] | None = None
        """What the writer waits for when there is nothing to do."""
        self._drained: asyncio.Future[None] | None = None
        """Set while closing: what the closing waits for."""
        self._shown_depth = -1
        self._probe = LookupProbe()
        self._ledgers = LedgerCache()
        self._contention = Contention()
        self._lookahead = Lookahead(database, self._queue, self._ledgers, self._contention, clock)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin serving."""
        self._loop, self._drained = asyncio.get_running_loop(), None
        self._task = asyncio.create_task(self._serve(), name="writer")

    async def close(self) -> None:
        """Finish what is queued, then stop."""
        task, self._task = self._task, None
        if task is None:
            return
        if self._arrival is None:
            self._drained = self._loop.create_future()
            await self._drained
        self._arrival = None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def submit(self, key: str, command: Command[Result]) -> Result:
        """Queue a command for the experiment with this key; returns when its effect is durable."""
        answer: FutureRecipient[Result] = FutureRecipient(loop=self._loop)
        self.enqueue(key, command, answer)
        return await answer

    def enqueue(self, key: str, command: Command[Result], recipient: Recipient[Result]) -> None:
        """Queue a command whose outcome goes to this recipient."""
        queue, arrival = self._queue, self._arrival
        if len(queue) + len(self._lookahead.decided) >= self._queue_limit:
            raise Overloaded("Too many requests are waiting; try again in a moment.")
        queue.append(QueuedRequest(key, command, recipient))
        if arrival is not None:
            self._arrival = None
            arrival.set_result(None)
        elif len(queue) == 1:
            self._lookahead.request_arrived()

    def known_arms(self, key: str) -> int | None:
        """How many arms the experiment with this key has, if this process has seen it."""
        ledger = self._ledgers.held.get(key)
        return None if ledger is None else len(ledger.arms)

    async def _serve(self) -> None:
        while True:
            if not self._queue and not self._lookahead.decided:
                await self._next_arrival()
            if self._lookahead.is_looking_up():
                await self._lookahead.finish_lookup()
            group, weight = self._lookahead.take_decided()
            fill(group, self._queue, weight)
            if len(self._queue) != self._shown_depth:
                self._shown_depth = len(self._queue)
                self._loop.call_soon(engine_metrics.group_taken, self._shown_depth)  # once the group is on its way
            if not await self._is_served(group):
                for request in group:  # so that one request that cannot be written harms no other
                    await self._is_served([request], others_may_join=False)
                    self._lookahead.discard()  # the next of them knows nothing of what was decided meanwhile

    async def _next_arrival(self) -> None:
        """Sleep until something is queued; whoever closes the writer learns that it sleeps."""
        self._arrival = arrival = self._loop.create_future()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        await arrival

    async def _is_served(self, group: list[QueuedRequest[Any]], *, others_may_join: bool = True) -> bool:
        """Answer them all, be it with a failure; False if the database refused to write one of several."""
        try:
            await self._serve_group(group, others_may_join=others_may_join)
        except Exception as unexpected:
            self._start_over(group)
            if isinstance(unexpected, WriteRefused) and len(group) > 1:
                return False
            log.exception("a group failed", requests=len(group))
            for request in group:
                request.fail(unexpected)
        return True

    async def _serve_group(self, requests: list[QueuedRequest[Any]], *, others_may_join: bool) -> None:
        """Serve the group in one transaction; after a lost connection find out whether it took effect, else try again."""
        attempt = 1
        while True:
            # Nobody waits for these any more, and nothing was decided for them yet.
            requests[:] = [request for request in requests if request.result is not UNDECIDED or not request.is_settled()]
            changed: list[Changes] = []
            began = time.perf_counter()
            try:
                await self._commit(requests, changed, others_may_join=others_may_join)
            except DefectiveRequest as defective:  # it fails alone, the others are served anew
                self._start_over(requests)
                defective.request.fail(defective.defect)
                continue
            except DatabaseUnavailable as lost:
                engine_metrics.group_lost()
                # If that cannot be told, the group fails: a retry of the caller's will tell.
                if not await self._took_effect(changed):
                    self._start_over(requests)
                    if attempt == _ATTEMPTS:
                        for request in requests:
                            request.fail(lost)
                        return
                    await asyncio.sleep(_RETRY_SECONDS * attempt)
                    attempt += 1
                    continue
                self._ledgers.forget_all()
            for request in requests:
                request.deliver()
            # After the answers, which are on their way by then.
            self._loop.call_soon(engine_metrics.group_done, len(requests), time.perf_counter() - began, changed)
            return

    async def _took_effect(self, changed: list[Changes]) -> bool:
        """Look for the group's own rows on a new connection."""
        return bool(changed) and await writes.is_written(self._database.groups, changed)

    def _start_over(self, requests: list[QueuedRequest[Any]]) -> None:
        """Something went wrong: what is stored is all that counts."""
        undecide(requests, self._ledgers)
        self._ledgers.forget_all()

    async def _commit(self, requests: list[QueuedRequest[Any]], changed: list[Changes], *, others_may_join: bool) -> None:
        """Decide from memory and write if nobody was faster; where somebody was, or lately has been, take the lock first."""
        keys = {request.key for request in requests}
        expected: Guard = []
        if not self._contention.until or not self._contention.includes(*keys):
            known = self._ledgers.known(keys)
            if len(known) < len(keys):
                known |= await self._ledgers.read(self._database.groups, keys.difference(known))
            expected = sorted([(ledger.experiment.id, ledger.stored_version) for ledger in known.values()])
            if await self._is_committed_unlocked(requests, known, expected, changed):
                return
            self._ledgers.forget(keys)  # what was decided in memory never happened
            changed.clear()
        undecide(requests, self._ledgers)
        await self._commit_under_lock(requests, keys, expected, changed, others_may_join=others_may_join)

    async def _is_committed_unlocked(
        self, requests: list[QueuedRequest[Any]], ledgers: dict[str, Ledger], expected: Guard, changed: list[Changes]
    ) -> bool:
        """Decide on these ledgers and write on the condition that they are current; False if they were not."""
        groups = self._database.groups
        try:
            undecided = [request for request in requests if request.result is UNDECIDED]
            if not self._probe.none_needs_lookup(undecided, ledgers):
                await look_up(groups, undecided, ledgers, under_lock=False)
            decide(undecided, ledgers, self._clock(), under_lock=False)
        except NotLookedUp:
            return False
        self._loop.call_soon(prepare_answers, requests)
        succeeded = False
        self._lookahead.commit_started(self._take_changes(ledgers, changed))
        try:
            succeeded = await writes.write_if(groups, expected, changed)
        finally:
            self._lookahead.commit_finished(succeeded=succeeded)
        return succeeded

    async def _commit_under_lock(
        self,
        requests: list[QueuedRequest[Any]],
        keys: set[str],
        expected: Guard,
        changed: list[Changes],
        *,
        others_may_join: bool,
    ) -> None:
        """Lock the experiments, bring their ledgers up to what is stored, decide and write."""
        async with self._database.groups.group() as group:
            locked = await writes.lock(group, list(keys))
            self._contention.note_versions(locked, dict(expected))
            current = await self._ledgers.refreshed(group, locked)
            if others_may_join:
                # Whoever came for the same experiments while we waited for the lock is served with us: turns are dear.
                fill(requests, self._queue, sum(request.command.weight for request in requests), keys)
            await look_up(group, requests, current, under_lock=True)
            decide(requests, current, self._clock(), under_lock=True)
            self._take_changes(current, changed)
            if changed:
                await group.write(writes.stages_of(changed))

    def _take_changes(self, ledgers: dict[str, Ledger], changed: list[Changes]) -> dict[Ledger, LookupResult]:
        """Collect the changes of these ledgers; returns what their requests saw and did."""
        seen = {}
        for ledger in ledgers.values():
            changes = ledger.take_changes()
            if changes is not None:
                changed.append(changes)
            seen[ledger], ledger.seen = ledger.seen, LookupResult()
        self._ledgers.trim(ledgers.values())
        return seen
