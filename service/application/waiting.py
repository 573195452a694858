"""Requests that wait for the writer: what they are, how they gather into groups, and how they are decided."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from service.errors import BestArmError, ExperimentNotFound
from service.storage import lookups
from service.storage.lookups import NotLookedUp, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.application.ledger import Ledger
    from service.storage.groups import Reads

Result = TypeVar("Result", covariant=True)  # noqa: PLC0105 - reads better in the protocols below
Given = TypeVar("Given", contravariant=True)  # noqa: PLC0105 - likewise

# A group is bounded so that its transaction stays short; batch requests count with all their items.
LARGEST_GROUP = 512
LARGEST_WEIGHT = 10_000
UNDECIDED: Final = object()
_scratch = Wanted()


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


class Asker(Protocol[Given]):
    """Whoever waits for an answer. A future is one."""

    def set_result(self, result: Given, /) -> None:
        """The answer."""
        ...

    def set_exception(self, failure: Exception, /) -> None:
        """There is none."""
        ...


class Waiting(msgspec.Struct, Generic[Result]):
    """A request for the experiment with this key."""

    key: str
    command: Command[Result]
    asker: Asker[Result]
    left: Callable[[], bool] | None = None
    """Asks whether the asker does not wait any more, if it may leave."""
    prepare: Callable[[Any], object] | None = None
    """To be told the result, or the refusal, while it is written and may still come to nothing."""
    result: Any = UNDECIDED
    """What it comes to once its group is durable; a refusal, too."""
    looked_up: bool = False
    """Its ledger found all that it wants to see."""
    answered: bool = False

    def is_over(self) -> bool:
        """Does nobody wait for it any more?"""
        return self.answered or (self.left is not None and self.left())

    def fail(self, failure: Exception) -> None:
        """Answer with a failure, if anybody waits for it."""
        if not self.is_over():
            self.answered = True
            self.asker.set_exception(failure)

    def give(self) -> None:
        """Answer with the result."""
        if isinstance(self.result, BestArmError):
            self.fail(self.result)
        elif not self.is_over():
            self.answered = True
            self.asker.set_result(self.result)


Queue: TypeAlias = deque[Waiting[Any]]


def prepare_answers(requests: Sequence[Waiting[Any]]) -> None:
    """The database is busy with them for a while: time to put the answers into words."""
    for waiting in requests:
        if waiting.prepare is not None:
            waiting.prepare(waiting.result)


class Faulty(Exception):  # noqa: N818 - caught by the writer
    """A defect of ours showed in one request of a group."""

    def __init__(self, waiting: Waiting[Any], fault: Exception) -> None:
        self.waiting = waiting
        self.fault = fault


def fill(group: list[Waiting[Any]], queue: Queue, weight: int, keys: set[str] | None = None) -> None:
    """A group that weighs so much, from the queue, within bounds; with keys, only while it is for one of these."""
    while queue and len(group) < LARGEST_GROUP and (keys is None or queue[0].key in keys):
        weight += queue[0].command.weight
        if weight > LARGEST_WEIGHT and group:
            break
        group.append(queue.popleft())


def need_nothing(requests: Sequence[Waiting[Any]], ledgers: dict[str, Ledger]) -> bool:
    """Is all that they must see before they can be decided in memory?"""
    global _scratch  # noqa: PLW0603 - a new one has seven sets, and nearly always nothing is wanted
    for waiting in requests:
        ledger = ledgers.get(waiting.key)
        if ledger and not waiting.looked_up:
            waiting.command.want(_scratch, ledger)
    if _scratch.is_nothing():
        _scratch.forget_new()
        return True
    _scratch = Wanted()
    return False


async def look_up(source: Reads, requests: Sequence[Waiting[Any]], ledgers: dict[str, Ledger], *, under_lock: bool) -> None:
    """Look up what they must see before they can be decided."""
    wanted: dict[Ledger, Wanted] = {}
    for waiting in requests:
        ledger = ledgers.get(waiting.key)
        if ledger and not waiting.looked_up:
            waiting.command.want(wanted.get(ledger) or wanted.setdefault(ledger, Wanted()), ledger)
    seen = await lookups.look_up(source, {one.experiment.id: want for one, want in wanted.items()}, under_lock=under_lock)
    for ledger in wanted:
        ledger.find(seen[ledger.experiment.id])


def decide(undecided: Sequence[Waiting[Any]], ledgers: dict[str, Ledger], now: int, *, under_lock: bool) -> None:
    """Decide one after the other in memory."""
    for waiting in undecided:
        known = ledgers.get(waiting.key)
        try:
            waiting.result = ExperimentNotFound(waiting.key) if known is None else waiting.command.apply(known, now)
        except BestArmError as refused:
            waiting.result = refused
        except NotLookedUp:
            raise
        except Exception as fault:
            if not under_lock:  # the ledger may be older than what was looked up: under the lock it is not
                raise NotLookedUp from fault
            raise Faulty(waiting, fault) from fault
