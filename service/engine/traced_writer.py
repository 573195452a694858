"""A writer that notes when each request waited, and when its group looked up, decided and wrote. Only where traces are wanted.

Nothing of the writer itself knows of it: what a group asks of the database is timed on its way there, and what lies between is
the deciding. Times are those of `time.perf_counter`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from service.engine.overflow import Overflow, refuse
from service.engine.queue import UNDECIDED
from service.engine.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain.callers import Caller
    from service.engine.queue import Command, QueuedRequest, Recipient, Result
    from service.storage.database import Database
    from service.storage.groups.statements import Group, Groups, Guard, Query, Reads, Stage, Values

PhaseName: TypeAlias = Literal["look up", "decide", "write"]


@dataclass(slots=True)
class GroupTimeline:
    """What a group of requests did, from the moment on that it left the queue."""

    requests: int
    decided_ahead: int
    """Requests that were decided while the group before was being written."""
    taken: float = field(default_factory=perf_counter)
    phases: list[tuple[PhaseName, float, float]] = field(default_factory=list)
    """In order, with beginning and end. Tries that came to nothing have theirs, too."""

    def add(self, name: PhaseName, began: float) -> None:
        """Note a phase that ends now."""
        self.phases.append((name, began, perf_counter()))

    def decided(self) -> None:
        """All that was to be looked up was there, and now it is decided."""
        self.add("decide", self.phases[-1][2] if self.phases else self.taken)


@dataclass(slots=True)
class RequestTimeline:
    """One request's part of it."""

    queued: float = field(default_factory=perf_counter)
    group: GroupTimeline | None = None
    """None for one that never got out of the queue."""


timelines_of_request: ContextVar[list[RequestTimeline] | None] = ContextVar("timelines_of_request", default=None)
"""Where the commands that the present task queues are to be noted; None if nobody wants to know."""


class TracedWriter(Writer):
    """The writer, watched."""

    def __init__(self, database: Database, *, queue_limit: int) -> None:
        super().__init__(database, queue_limit=queue_limit)
        self._timelines: dict[Recipient[Any], RequestTimeline] = {}
        self._group = GroupTimeline(0, 0)
        self._overflow = Overflow(self._refuse)
        self._database: Any = SimpleNamespace(groups=_TimedGroups(database.groups, lambda: self._group))

    def enqueue(self, caller: Caller, key: str, command: Command[Result], recipient: Recipient[Result]) -> None:
        """Queue it, and note when."""
        super().enqueue(caller, key, command, recipient)
        timeline = self._timelines[recipient] = RequestTimeline()
        if isinstance(recipient, asyncio.Future):  # it may be cancelled long before its turn
            recipient.add_done_callback(lambda done: self._timelines.pop(done, None))
        wanted = timelines_of_request.get()
        if wanted is not None:
            wanted.append(timeline)

    def timeline_of(self, recipient: Recipient[Any]) -> RequestTimeline | None:
        """Of what was queued and is not answered yet."""
        return self._timelines.get(recipient)

    def _refuse(self, request: QueuedRequest[Any]) -> None:
        refuse(request)
        self._timelines.pop(request.recipient, None)

    async def _refuse_locked(self, group: list[QueuedRequest[Any]]) -> None:
        before = list(group)
        await super()._refuse_locked(group)
        kept = {id(request) for request in group}
        for request in before:
            if id(request) not in kept:
                self._timelines.pop(request.recipient, None)

    async def _is_served(self, group: list[QueuedRequest[Any]], *, others_may_join: bool = True) -> bool:
        ahead = sum(request.result is not UNDECIDED for request in group)
        timeline = self._group = GroupTimeline(len(group), ahead)
        self._take_along(group, timeline)
        before = list(group)
        is_served = await super()._is_served(group, others_may_join=others_may_join)
        if is_served:
            for request in (*before, *group):
                self._timelines.pop(request.recipient, None)
        return is_served

    def _take_along(self, group: Sequence[QueuedRequest[Any]], timeline: GroupTimeline) -> None:
        timeline.requests = len(group)
        for request in group:
            noted = self._timelines.get(request.recipient)
            if noted is not None:
                noted.group = timeline

    async def _commit_under_lock(self, requests: list[QueuedRequest[Any]], *rest: Any, **named: Any) -> None:  # noqa: ANN401 - its own
        await super()._commit_under_lock(requests, *rest, **named)
        self._take_along(requests, self._group)  # others may have joined


class _TimedReads:
    """What is looked up, and how long that takes."""

    def __init__(self, inner: Reads, timeline: Callable[[], GroupTimeline]) -> None:
        self._inner, self._timeline = inner, timeline

    async def rows(self, query: Query, *columns: Values) -> Sequence[Any]:
        """The rows that a query finds."""
        began = perf_counter()
        try:
            return await self._inner.rows(query, *columns)
        finally:
            self._timeline().add("look up", began)


class _TimedGroup(_TimedReads):
    """An open transaction. Its commit belongs to what it wrote."""

    def __init__(self, inner: Group, timeline: Callable[[], GroupTimeline]) -> None:
        super().__init__(inner, timeline)
        self._group = inner
        self.began_to_write: float | None = None

    async def write(self, stages: Sequence[Stage]) -> None:
        """Run these inserts and updates."""
        self._timeline().decided()
        self.began_to_write = perf_counter()
        await self._group.write(stages)


class _TimedGroups(_TimedReads):
    """Where groups come from."""

    def __init__(self, inner: Groups, timeline: Callable[[], GroupTimeline]) -> None:
        super().__init__(inner, timeline)
        self._groups = inner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else there is of it takes no time
        return getattr(self._groups, name)

    @asynccontextmanager
    async def group(self) -> AsyncIterator[Group]:
        """Begin a transaction."""
        timed = None
        try:
            async with self._groups.group() as inner:
                timed = _TimedGroup(inner, self._timeline)
                yield timed
        finally:
            if timed is not None and timed.began_to_write is not None:
                self._timeline().add("write", timed.began_to_write)

    async def write_if(self, guard: Guard, stages: Sequence[Stage]) -> bool:
        """All of it in one transaction, if the guard holds."""
        timeline = self._timeline()
        timeline.decided()
        began = perf_counter()
        try:
            return await self._groups.write_if(guard, stages)
        finally:
            timeline.add("write", began)
