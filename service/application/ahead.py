"""The next group, decided while the last one is on its way to the disk, as if that were durable already.

If the last one fails, for whatever reason, all that was decided ahead is taken back and decided again from what is stored
(docs/decisions/0002).
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import structlog

from service.application.waiting import LARGEST_GROUP, LARGEST_WEIGHT, UNDECIDED
from service.errors import BestArmError
from service.storage import lookups
from service.storage.lookups import Found, NotLookedUp, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from service.application.contention import Contention
    from service.application.ledger import Ledger
    from service.application.ledgers import Ledgers
    from service.application.waiting import Queue, Waiting
    from service.storage.database import Database

# Looking ahead needs a second connection. Where there is none, or a slow one, things go on without it.
_LOOK_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 10.0

log = structlog.get_logger(__name__)


class Ahead:
    """Decides the head of the writer's queue on the writer's ledgers between `begin` and `end`."""

    def __init__(
        self, database: Database, queue: Queue, ledgers: Ledgers, contention: Contention, clock: Callable[[], int]
    ) -> None:
        self._database, self._queue, self._ledgers, self._contention, self._clock = database, queue, ledgers, contention, clock
        self.decided: list[Waiting[Any]] = []
        self._weight = 0
        self._flying = False
        self._may_decide = False
        self._wanted = Wanted()
        self._on_its_way: dict[Ledger, Found] = {}
        """What the last group saw and did. Whoever reads while it is being written may not see that."""
        self.looking: asyncio.Task[None] | None = None
        self._look_from = 0.0
        self._times_taken_back = 0

    def begin(self, on_its_way: dict[Ledger, Found]) -> None:
        """A group takes off; this is what it saw and did."""
        self._on_its_way = on_its_way
        self._flying = self._may_decide = True
        self.looking = None
        if self._queue:
            self.notice()

    def end(self, *, well: bool) -> None:
        """It landed, or not."""
        self._flying = self._may_decide = False
        if not well:
            self.take_back()

    def notice(self) -> None:
        """Something is in the queue: decide it, with whatever else arrives in this turn of the loop."""
        if self._may_decide:
            asyncio.get_running_loop().call_soon(self._decide)

    def take(self) -> tuple[list[Waiting[Any]], int]:
        """What is decided, and its weight; it must be written with the very next group."""
        taken = self.decided, self._weight
        self.decided, self._weight = [], 0
        return taken

    def take_back(self) -> None:
        """What the decisions were built on is gone: they go back to the queue and are made anew."""
        self._times_taken_back += 1
        self._queue.extendleft(reversed(self.take()[0]))
        take_back(self._queue, self._ledgers)

    async def looked(self) -> None:
        """Wait for what is being looked up; but not for a second connection that does not come."""
        looking, self.looking = self.looking, None  # so that one that hangs is waited for once
        if looking is None:
            return
        done, _ = await asyncio.wait({looking}, timeout=_LOOK_SECONDS)
        if not done:
            self._look_from = time.monotonic() + _LOOK_AGAIN_SECONDS
            self._times_taken_back += 1
            log.warning("looking ahead takes too long")

    def _decide(self) -> None:
        """Decide the head of the queue as long as that needs nothing but what is in memory."""
        queue, now = self._queue, self._clock()
        while self._may_decide and queue:
            waiting = queue[0]
            if waiting.is_over():
                queue.popleft()
                continue
            self._may_decide = self._is_decided(waiting, now)
            if self._may_decide:
                self.decided.append(queue.popleft())
        self._wanted.forget_new()

    def _is_decided(self, waiting: Waiting[Any], now: int) -> bool:
        ledger, command = self._ledgers.kept.get(waiting.key), waiting.command
        weight = self._weight + command.weight
        if ledger is None or weight > LARGEST_WEIGHT or len(self.decided) >= LARGEST_GROUP:
            return False
        if self._contention.until and self._contention.is_in(waiting.key):
            return False
        try:
            if not waiting.looked_up:
                command.want(self._wanted, ledger)
                if not self._wanted.is_nothing():
                    self._begin_to_look()
                    return False
            waiting.result = command.apply(ledger, now)
        except BestArmError as refused:
            waiting.result = refused
        except NotLookedUp:
            return False
        except Exception:  # noqa: BLE001 - the same happens again when its turn comes, where it is dealt with
            self._ledgers.forget([waiting.key])
            self.take_back()
            return False
        self._weight = weight
        return True

    def _begin_to_look(self) -> None:
        self._wanted = Wanted()
        if time.monotonic() >= self._look_from:
            self.looking = asyncio.get_running_loop().create_task(self._look(self._times_taken_back))

    async def _look(self, taken_back: int) -> None:
        """Read what the head of the queue wants to see while the last group is being written, and go on deciding."""
        try:
            await self._read(taken_back)
        except Exception as failure:  # noqa: BLE001 - they are looked up, and it is met again, when their turn comes
            self._look_from = time.monotonic() + _LOOK_AGAIN_SECONDS
            log.warning("looking ahead failed", failure=repr(failure))

    async def _read(self, taken_back: int) -> None:
        batch: list[Waiting[Any]] = []
        wanted: dict[Ledger, Wanted] = {}
        weight = self._weight
        for waiting in islice(self._queue, LARGEST_GROUP - len(self.decided)):
            ledger = self._ledgers.kept.get(waiting.key)
            weight += waiting.command.weight
            if ledger is None or weight > LARGEST_WEIGHT:
                break
            want = wanted.get(ledger) or wanted.setdefault(ledger, Wanted())
            waiting.command.want(want, ledger)
            if want.due_by is not None:
                return  # what is due depends on the group that is being written
            batch.append(waiting)
        asked = {ledger.experiment.id: want for ledger, want in wanted.items()}
        seen = await lookups.look_up(self._database.groups, asked, under_lock=False)
        if taken_back != self._times_taken_back:
            return  # what was read may be older than what the ledgers know now
        for ledger, want in wanted.items():
            found = seen[ledger.experiment.id]
            if ledger in self._on_its_way:
                found.overlay(self._on_its_way[ledger], want)
            ledger.find(found)
        for waiting in batch:
            waiting.looked_up = True
        self._may_decide = self._flying
        self._decide()


def take_back(requests: Iterable[Waiting[Any]], ledgers: Ledgers) -> None:
    """Nothing was decided, nothing looked up."""
    for waiting in requests:
        waiting.looked_up = False
        if waiting.result is not UNDECIDED:
            waiting.result = UNDECIDED
            ledgers.forget([waiting.key])
