"""The writer: one queue and one transaction at a time per process, shared by whatever requests have arrived meanwhile.

No timer: the next group is what was queued while the last one was committing, so a lone request waits for nobody and a
thousand share one commit. Every request is answered only after its transaction is durable. A request that is refused is its own
result and leaves no trace; the rest of its group goes on.

A group is decided from what this process knows and written on the condition that the experiments' versions are still the same
(docs/decisions/0002). Where another worker writes the same experiment, its row is locked first. While a group is on its way to
the disk the next one is decided (service/engine/lookahead.py).

A group takes the lock, and is decided again under it, where another worker was or is faster, where somebody else held the row a
moment ago, where a decision turned out to need a lookup, where a connection was lost, and after a lost attempt at the same group
(`_commit`; service/engine/lost_attempts.py). After a failure `_start_over` forgets what was decided and what is remembered, and
the group is decided again from what is stored; if it cannot be told whether it was written, it fails.
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
from service.engine.lost_attempts import LostAttempts
from service.engine.overflow import Overflow
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
from service.errors import DatabaseLocked, DatabaseUnavailable, ExperimentLocked, WriteRefused
from service.storage.groups import writes

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain import Changes
    from service.domain.callers import Access, Caller
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
        self._overflow = Overflow()
        self._arrival: asyncio.Future[None] | None = None
        """What the writer waits for when there is nothing to do."""
        self._drained: asyncio.Future[None] | None = None
        """Set while closing: what the closing waits for."""
        self._shown_depth = -1
        self._probe = LookupProbe()
        self._ledgers = LedgerCache()
        self._losses = 0
        """How often connections had been lost when the ledgers were read."""
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

    async def submit(self, access: Access, command: Command[Result]) -> Result:
        """Queue a caller's command for an experiment; returns when its effect is durable."""
        answer: FutureRecipient[Result] = FutureRecipient(loop=self._loop)
        self.enqueue(access.caller, access.key, command, answer)
        return await answer

    def enqueue(self, caller: Caller, key: str, command: Command[Result], recipient: Recipient[Result]) -> None:
        """Queue a command whose outcome goes to this recipient; what its caller may not do is refused here, whatever the way."""
        caller.admit(key, command)
        queue, arrival = self._queue, self._arrival
        if len(queue) + len(self._lookahead.decided) >= self._queue_limit:
            self._overflow.add(QueuedRequest(caller, key, command, recipient), self._loop)
            return
        queue.append(QueuedRequest(caller, key, command, recipient))
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
            if self._overflow.waiting:
                self._overflow.move_into(self._queue, self._queue_limit - len(self._queue))
            if self._contention.locked:
                await self._refuse_locked(group)
            if len(self._queue) != self._shown_depth:
                self._shown_depth = len(self._queue)
                self._loop.call_soon(engine_metrics.group_taken, self._shown_depth)  # once the group is on its way
            if not await self._is_served(group):
                await self._serve_in_parts(group)

    async def _serve_in_parts(self, group: list[QueuedRequest[Any]]) -> None:
        """So that what cannot be written harms no other: one experiment after the other, then one request."""
        parts = {key: [request for request in group if request.key == key] for key in sorted({one.key for one in group})}
        for part in parts.values():
            if len(parts) > 1 and await self._is_served(part, others_may_join=False):
                self._lookahead.discard()  # the next part knows nothing of what was decided meanwhile
                continue
            for request in part:
                await self._is_served([request], others_may_join=False)
                self._lookahead.discard()

    async def _refuse_locked(self, group: list[QueuedRequest[Any]]) -> None:
        """Take out of the group what somebody else still holds: it is asked for without waiting, so that nobody waits for it."""
        lately = self._contention.locked_among(request.key for request in group)
        if not lately:
            return
        self._start_over(group)
        try:
            locked = await writes.locked_elsewhere(self._database.groups, sorted(lately))
        except DatabaseUnavailable:
            return  # which the group is about to find out
        self._contention.note_unlocked(lately - locked)
        for request in group:
            if request.key in locked:
                request.fail(ExperimentLocked())
        group[:] = [request for request in group if request.key not in locked]

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
            if isinstance(unexpected, ExperimentLocked):
                keys = {request.key for request in group}
                if len(keys) > 1:
                    return False
                self._contention.note_locked(keys)
            if isinstance(unexpected, DatabaseUnavailable):  # no defect of ours, and its callers are told
                log.warning("a group failed", requests=len(group), reason=str(unexpected))
            else:
                log.exception("a group failed", requests=len(group))
            for request in group:
                request.fail(unexpected)
        return True

    async def _serve_group(self, requests: list[QueuedRequest[Any]], *, others_may_join: bool) -> None:
        """Serve the group in one transaction; after a lost connection find out whether it took effect, else try again."""
        attempt, lost = 1, None
        while True:
            # Nobody waits for these any more, and nothing was decided for them yet.
            requests[:] = [request for request in requests if request.result is not UNDECIDED or not request.is_settled()]
            changed: list[Changes] = []
            began = time.perf_counter()
            try:
                await self._commit(requests, changed, lost, others_may_join=others_may_join)
            except DefectiveRequest as defective:  # it fails alone, the others are served anew
                self._start_over(requests)
                defective.request.fail(defective.defect)
                continue
            except (ExperimentLocked, DatabaseLocked):
                raise  # nothing was written, and another attempt would wait as long
            except DatabaseUnavailable as away:
                engine_metrics.group_lost()
                lost = lost or LostAttempts()
                lost.add(changed, requests)
                # If that cannot be told, the group fails: a retry of the caller's will tell.
                if not await self._took_effect(changed, {request.key for request in requests}):
                    self._start_over(requests)
                    if attempt == _ATTEMPTS:
                        for request in requests:
                            request.fail(away)
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

    async def _took_effect(self, changed: list[Changes], keys: set[str]) -> bool:
        """Look for the group's own rows on a new connection.

        Under the locks, whose commit is as durable as the group's must be: it waits for a standby that the group's may have
        missed.
        """
        if not changed:
            return False
        async with self._database.groups.group() as group:
            await writes.lock(group, list(keys))
            return await writes.is_written(group, changed)

    def _start_over(self, requests: list[QueuedRequest[Any]]) -> None:
        """Something went wrong: what is stored is all that counts."""
        undecide(requests, self._ledgers)
        self._ledgers.forget_all()

    def _trust_no_other_server(self, requests: list[QueuedRequest[Any]]) -> None:
        """Behind a new connection may be a standby that was behind, or a backup: the same versions may mean something else."""
        if self._database.groups.losses != self._losses:
            self._losses = self._database.groups.losses
            self._start_over(requests)

    async def _commit(
        self, requests: list[QueuedRequest[Any]], changed: list[Changes], lost: LostAttempts | None, *, others_may_join: bool
    ) -> None:
        """Decide from memory and write if nobody was faster.

        Where somebody was, or lately has been, and where an attempt was lost, the lock comes first.
        """
        self._trust_no_other_server(requests)
        keys = {request.key for request in requests}
        expected: Guard = []
        if lost is None and (not self._contention.until or not self._contention.includes(*keys)):
            known = self._ledgers.known(keys)
            if len(known) < len(keys):
                known |= await self._ledgers.read(self._database.groups, keys.difference(known))
            expected = sorted([(ledger.experiment.id, ledger.stored_version) for ledger in known.values()])
            if await self._is_committed_unlocked(requests, known, expected, changed):
                return
            self._ledgers.forget(keys)  # what was decided in memory never happened
            changed.clear()
        undecide(requests, self._ledgers)
        await self._commit_under_lock(requests, expected, changed, lost, others_may_join=others_may_join)

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
        if groups.losses != self._losses:  # while that was looked up
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
        expected: Guard,
        changed: list[Changes],
        lost: LostAttempts | None,
        *,
        others_may_join: bool,
    ) -> None:
        """Lock the experiments, bring their ledgers up to what is stored, decide and write."""
        keys = {request.key for request in requests}
        async with self._database.groups.group() as group:
            self._trust_no_other_server(requests)
            locked = await writes.lock(group, list(keys))
            self._contention.note_versions(locked, dict(expected))
            current = await self._ledgers.refreshed(group, locked)
            if lost is not None:
                await lost.restore(group)
            if others_may_join:
                # Whoever came for the same experiments while we waited for the lock is served with us: turns are dear.
                fill(requests, self._queue, sum(request.command.weight for request in requests), keys)
            undecided = [request for request in requests if request.result is UNDECIDED]
            await look_up(group, undecided, current, under_lock=True)
            decide(undecided, current, self._clock(), under_lock=True)
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
