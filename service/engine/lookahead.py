"""The next group, decided while the last one is on its way to the disk, as if that were durable already.

If the last one fails, for whatever reason, all that was decided on top of it is discarded and decided again from what is stored
(docs/decisions/0002).
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import structlog

from service.domain.lookups import LookupRequest, LookupResult, NotLookedUp
from service.engine.queue import LARGEST_GROUP, LARGEST_WEIGHT, UNDECIDED, LookupProbe
from service.errors import BestArmError
from service.storage.groups import lookup_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from service.engine.contention import Contention
    from service.engine.ledger import Ledger
    from service.engine.ledger_cache import LedgerCache
    from service.engine.queue import Queue, QueuedRequest
    from service.storage.database import Database

# Looking up ahead needs a second connection. Where there is none, or a slow one, things go on without it.
_LOOKUP_SECONDS = 1.0
_LOOK_UP_AGAIN_SECONDS = 10.0

log = structlog.get_logger(__name__)


class Lookahead:
    """Decides the head of the writer's queue, on the writer's ledgers, while a commit is under way."""

    def __init__(
        self, database: Database, queue: Queue, ledgers: LedgerCache, contention: Contention, clock: Callable[[], int]
    ) -> None:
        self._database, self._queue, self._ledgers, self._contention, self._clock = database, queue, ledgers, contention, clock
        self.decided: list[QueuedRequest[Any]] = []
        self._weight = 0
        self._committing = False
        self._may_decide = False
        self._probe = LookupProbe()
        self._in_commit: dict[Ledger, LookupResult] = {}
        """What the group that is being written saw and did. Whoever reads meanwhile may not see that."""
        self._lookup: asyncio.Task[None] | None = None
        self._lookups_from = 0.0
        self._times_discarded = 0

    def commit_started(self, in_commit: dict[Ledger, LookupResult]) -> None:
        """A group is on its way to the disk; this is what it saw and did."""
        self._in_commit = in_commit
        self._committing = self._may_decide = True
        self._lookup = None
        if self._queue:
            self.request_arrived()

    def commit_finished(self, *, succeeded: bool) -> None:
        """Stop deciding. Discard what was decided on top of a group that failed."""
        self._committing = self._may_decide = False
        if not succeeded:
            self.discard()

    def request_arrived(self) -> None:
        """Decide what is in the queue, with whatever else arrives in this turn of the loop: deferred to `_decide`."""
        if self._may_decide:
            asyncio.get_running_loop().call_soon(self._decide)

    def take_decided(self) -> tuple[list[QueuedRequest[Any]], int]:
        """The decided requests and their weight; they must be written with the very next group."""
        taken = self.decided, self._weight
        self.decided, self._weight = [], 0
        return taken

    def discard(self) -> None:
        """What the decisions were built on is gone: the requests go back to the queue and are decided anew."""
        self._times_discarded += 1
        self._queue.extendleft(reversed(self.take_decided()[0]))
        undecide(self._queue, self._ledgers)

    async def finish_lookup(self) -> None:
        """Wait for a lookup that is under way, but not for a second connection that does not come."""
        lookup, self._lookup = self._lookup, None  # so that one that hangs is waited for once
        if lookup is None:
            return
        done, _ = await asyncio.wait({lookup}, timeout=_LOOKUP_SECONDS)
        if not done:
            self._lookups_from = time.monotonic() + _LOOK_UP_AGAIN_SECONDS
            self._times_discarded += 1
            log.warning("looking up ahead takes too long")

    def is_looking_up(self) -> bool:
        """A lookup is under way."""
        return self._lookup is not None

    def _decide(self) -> None:
        """Decide the head of the queue as long as that needs nothing but what is in memory."""
        queue, now = self._queue, self._clock()
        while self._may_decide and queue:
            request = queue[0]
            if request.is_settled():
                queue.popleft()
                continue
            self._may_decide = self._is_decided(request, now)
            if self._may_decide:
                self.decided.append(queue.popleft())
        self._probe.reset()

    def _is_decided(self, request: QueuedRequest[Any], now: int) -> bool:
        ledger, command = self._ledgers.held.get(request.key), request.command
        weight = self._weight + command.weight
        if ledger is None or (self.decided and (weight > LARGEST_WEIGHT or len(self.decided) >= LARGEST_GROUP)):
            return False
        if self._contention.until and self._contention.includes(request.key):
            return False
        version = ledger.version
        try:
            if not request.looked_up and self._probe.needs_lookup(command, ledger):
                self._start_lookup()
                return False
            ledger.log.caller = request.caller
            request.result = command.apply(ledger, now)
        except BestArmError as refused:
            request.result = refused
        except NotLookedUp:
            if ledger.version != version:  # a batch of which some items were decided
                self._forget(request.key)
            return False
        except Exception:  # noqa: BLE001 - the same happens again when its turn comes, where it is dealt with
            self._forget(request.key)
            return False
        self._weight = weight
        return True

    def _forget(self, key: str) -> None:
        """A ledger holds part of a request: nothing that is decided may rest on it."""
        self._ledgers.forget([key])
        self.discard()

    def _start_lookup(self) -> None:
        if time.monotonic() >= self._lookups_from:
            self._lookup = asyncio.get_running_loop().create_task(self._look_up(self._times_discarded))

    async def _look_up(self, discarded: int) -> None:
        """Read what the head of the queue has to see while the last group is being written, and go on deciding."""
        try:
            await self._read(discarded)
        except Exception as failure:  # noqa: BLE001 - they are looked up, and it is met again, when their turn comes
            self._lookups_from = time.monotonic() + _LOOK_UP_AGAIN_SECONDS
            log.warning("looking up ahead failed", failure=repr(failure))

    async def _read(self, discarded: int) -> None:
        batch: list[QueuedRequest[Any]] = []
        wanted: dict[Ledger, LookupRequest] = {}
        weight = self._weight
        for request in islice(self._queue, LARGEST_GROUP - len(self.decided)):
            ledger = self._ledgers.held.get(request.key)
            weight += request.command.weight
            if ledger is None or ((batch or self.decided) and weight > LARGEST_WEIGHT):
                break
            want = wanted.get(ledger) or wanted.setdefault(ledger, LookupRequest())
            request.command.request_lookups(want, ledger)
            if want.due_by is not None or want.findings_since is not None:
                return  # what is due, and what holds, depends on the group that is being written
            batch.append(request)
        asked = {ledger.experiment.id: want for ledger, want in wanted.items()}
        found = await lookup_queries.look_up(self._database.groups, asked, under_lock=False)
        if discarded != self._times_discarded:
            return  # what was read may be older than what the ledgers know now
        for ledger, want in wanted.items():
            result = found[ledger.experiment.id]
            if ledger in self._in_commit:
                result.overlay(self._in_commit[ledger], want)
            ledger.add_lookups(result)
        for request in batch:
            request.looked_up = True
        self._may_decide = self._committing
        self._decide()


def undecide(requests: Iterable[QueuedRequest[Any]], ledgers: LedgerCache) -> None:
    """Take decisions and lookups back; the ledgers that they changed are forgotten."""
    for request in requests:
        request.looked_up = False
        if request.result is not UNDECIDED:
            request.result = UNDECIDED
            ledgers.forget([request.key])
