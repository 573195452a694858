"""Requests that wait for the writer: what they are, how they gather into groups, and how a group is decided."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from service.domain.callers import Caller, Guarded
from service.domain.lookups import LookupRequest, NotLookedUp
from service.errors import BestArmError, ExperimentNotFound
from service.storage.groups import lookup_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.engine.ledger import Ledger
    from service.storage.groups.statements import Reads

Result = TypeVar("Result", covariant=True)  # noqa: PLC0105 - reads better in the protocols below
Given = TypeVar("Given", contravariant=True)  # noqa: PLC0105 - reads better in the protocols below
Awaited = TypeVar("Awaited")

# A group is bounded so that its transaction stays short; batch requests count with all their items. While one is written, the
# next is read and decided: of four batches at a time two and two keep worker and database busy, three and one do not. A larger
# batch is a group of its own.
LARGEST_GROUP = 512
LARGEST_WEIGHT = 2_000
UNDECIDED: Final = object()


class Command(Guarded, Protocol[Result]):
    """One request that may change one experiment."""

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """Add what must be looked up before it can be decided."""
        ...

    def apply(self, ledger: Ledger, now: int) -> Result:
        """Decide and change the ledger. A refusal is raised before anything was changed."""
        ...


class Recipient(Protocol[Given]):
    """Whoever waits for a command: the engine's only way up."""

    @property
    def has_disconnected(self) -> bool:
        """It has gone, and what was not decided yet need not be. An attribute where it never goes before the outcome is there."""
        ...

    def prepare(self, result: Any, /) -> None:  # noqa: ANN401 - what its command gives, or a refusal
        """Put the outcome into words while it is being written, when it may still come to nothing."""
        ...

    def set_result(self, result: Given, /) -> None:
        """The request took effect, durably."""
        ...

    def set_exception(self, failure: Exception, /) -> None:
        """It was refused, or could not be written."""
        ...


class FutureRecipient(asyncio.Future[Awaited]):
    """A recipient that a task awaits."""

    @property
    def has_disconnected(self) -> bool:
        """The task that awaited it was cancelled."""
        return self.done()

    def prepare(self, result: Any, /) -> None:  # noqa: ANN401 - as above
        """Leave the words to the task."""


class QueuedRequest(msgspec.Struct, Generic[Result]):
    """A caller's request for the experiment with this key, from its arrival until its recipient has the outcome."""

    caller: Caller
    key: str
    command: Command[Result]
    recipient: Recipient[Result]
    result: Any = UNDECIDED
    """What it comes to once its group is durable; a refusal, too."""
    looked_up: bool = False
    """Its ledger has seen all that it has to see."""
    answered: bool = False

    def is_settled(self) -> bool:
        """Nobody waits for it any more."""
        return self.answered or self.recipient.has_disconnected

    def fail(self, failure: Exception) -> None:
        """Answer with a failure, if anybody waits for it."""
        if not self.is_settled():
            self.answered = True
            self.recipient.set_exception(failure)

    def deliver(self) -> None:
        """Answer with the outcome."""
        if isinstance(self.result, BestArmError):
            self.fail(self.result)
        elif not self.is_settled():
            self.answered = True
            self.recipient.set_result(self.result)


Queue: TypeAlias = deque[QueuedRequest[Any]]


class DefectiveRequest(Exception):  # noqa: N818 - caught by the writer
    """A defect of ours showed in one request of a group."""

    def __init__(self, request: QueuedRequest[Any], defect: Exception) -> None:
        self.request = request
        self.defect = defect


class LookupProbe:
    """Asks commands what they have to look up, nearly always nothing, without making seven new sets for each answer."""

    def __init__(self) -> None:
        self._request = LookupRequest()

    def needs_lookup(self, command: Command[Any], ledger: Ledger) -> bool:
        """Must something be read from the database before this can be decided?"""
        command.request_lookups(self._request, ledger)
        if self._request.is_nothing():
            return False
        self._request = LookupRequest()
        return True

    def none_needs_lookup(self, requests: Sequence[QueuedRequest[Any]], ledgers: Mapping[str, Ledger]) -> bool:
        """Is all that these have to see in memory?"""
        for request in requests:
            ledger = ledgers.get(request.key)
            if ledger and not request.looked_up and self.needs_lookup(request.command, ledger):
                return False
        self.reset()
        return True

    def reset(self) -> None:
        """Forget the new keys that nobody has to look for."""
        self._request.forget_new()


def fill(group: list[QueuedRequest[Any]], queue: Queue, weight: int, keys: set[str] | None = None) -> None:
    """Move the head of the queue into a group of this weight, within bounds; with keys, only while it is for one of these."""
    while queue and len(group) < LARGEST_GROUP and (keys is None or queue[0].key in keys):
        weight += queue[0].command.weight
        if weight > LARGEST_WEIGHT and group:
            break
        group.append(queue.popleft())


async def look_up(
    source: Reads, requests: Sequence[QueuedRequest[Any]], ledgers: Mapping[str, Ledger], *, under_lock: bool
) -> None:
    """Read what the requests have to see into their ledgers."""
    wanted: dict[Ledger, LookupRequest] = {}
    for request in requests:
        ledger = ledgers.get(request.key)
        if ledger and not request.looked_up:
            request.command.request_lookups(wanted.get(ledger) or wanted.setdefault(ledger, LookupRequest()), ledger)
    found = await lookup_queries.look_up(source, {one.experiment.id: want for one, want in wanted.items()}, under_lock=under_lock)
    for ledger in wanted:
        ledger.add_lookups(found[ledger.experiment.id])


def decide(undecided: Sequence[QueuedRequest[Any]], ledgers: Mapping[str, Ledger], now: int, *, under_lock: bool) -> None:
    """Decide one after the other in memory."""
    for request in undecided:
        ledger = ledgers.get(request.key)
        try:
            if ledger is None:
                request.result = ExperimentNotFound(request.key)
            else:
                ledger.log.caller = request.caller
                request.result = request.command.apply(ledger, now)
        except BestArmError as refused:
            request.result = refused
        except NotLookedUp:
            raise
        except Exception as defect:
            if not under_lock:  # the ledger may be older than what was looked up: under the lock it is not
                raise NotLookedUp from defect
            raise DefectiveRequest(request, defect) from defect


def prepare_answers(requests: Sequence[QueuedRequest[Any]]) -> None:
    """Put the outcomes into words while the database is busy with them."""
    for request in requests:
        request.recipient.prepare(request.result)
