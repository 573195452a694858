"""The two clients. Every operation is written once, as a flow, and is a method of both."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import update_wrapper
from typing import Concatenate, ParamSpec, Self, TypeVar

from bestarm.assignment import Assignment, Json, Reward, number, text
from bestarm.asynchronous import AsyncWire
from bestarm.blocking import BlockingWire
from bestarm.counts import Counts
from bestarm.errors import Error
from bestarm.exchange import Flow
from bestarm.experiment import Recommendation
from bestarm.operations import asking, looking, managing, telling
from bestarm.operations.core import Core
from bestarm.origin import Origin
from bestarm.reward_sender import RewardSender
from bestarm.spool import Spool, Told
from bestarm.trial import Trial
from bestarm.watching import CONNECT_SECONDS, SILENT_SECONDS, Following

P = ParamSpec("P")
T = TypeVar("T")


class _BothClients:
    """What does not depend on how requests are sent: settings, counts, and the queue of rewards."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 5.0,
        queue_size: int = 10_000,
        flush_seconds: float = 1.0,
        spool: str | os.PathLike[str] | None = None,
        max_connections: int = 100,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """A client of the service at `url`.

        Args:
            url: Where the service is.
            key: Sent with every request as `Authorization: Bearer …`.
            timeout: Seconds that a call may take, all its tries included.
            queue_size: How many rewards `reward_later` keeps at most; those that come then are lost, and counted.
            flush_seconds: How long a queued reward waits for others to go with it.
            spool: A folder where queued rewards survive the process; clients of several services may share it.
            max_connections: How many requests are on their way at once at most; the others wait.
            ssl_context: Another one than httpx makes.
        """
        self._origin = Origin.at(url, key, ssl_context, max_connections)
        self._core = Core(timeout)
        self._rewards = RewardSender(
            BlockingWire(self._origin),
            self._core.counter,
            size=queue_size,
            every_seconds=flush_seconds,
            spool=Spool.at(spool, self._origin.address),
        )
        self._connect()

    def _connect(self) -> None:
        """Make what sends the requests."""
        raise NotImplementedError

    @property
    def counts(self) -> Counts:
        """What happened in this process that no caller was told."""
        return self._core.counter.counts(waiting=len(self._rewards))

    @property
    def dropped_rewards(self) -> int:
        """Rewards that were never sent because nothing had been drawn: of a fallback, or of a concluded experiment."""
        return self.counts.rewards_dropped

    def reward_later(self, assignment: Assignment | str | None, reward: float, *, experiment: str | None = None) -> bool:
        """Queue a reward: back at once, sent in the background, again until the service has it. False when the queue is full."""
        key, assignment_id = telling.named(assignment, experiment)
        if assignment_id is None:
            self._core.counter.add("rewards_dropped")
            return False
        return self._rewards.put(Told(key, Reward(number(reward), assignment=assignment_id)))

    def reward_unit_later(self, experiment: str, unit: str, reward: float) -> bool:
        """Queue a reward for the assignment that a unit of a sticky experiment has. False when the queue is full."""
        return self._rewards.put(Told(text(experiment, "An experiment's key"), Reward(number(reward), unit=unit)))


def _blocking(operation: Callable[Concatenate[Core, P], Flow[T]]) -> Callable[Concatenate[Client, P], T]:
    """The operation as a method that returns when it is done."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._wire.run(operation(self._core, *args, **kwargs))

    update_wrapper(method, operation)
    return method


def _awaitable(operation: Callable[Concatenate[Core, P], Flow[T]]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """The operation as a method to be awaited."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._wire.run(operation(self._core, *args, **kwargs))

    update_wrapper(method, operation)
    return method


class Client(_BothClients):
    """A client that blocks. One serves a whole process: any number of threads, and children that it forks."""

    def _connect(self) -> None:
        self._wire = BlockingWire(self._origin)

    assign = _blocking(asking.assign)
    assign_many = _blocking(asking.assign_many)
    assignment = _blocking(asking.assignment)
    reward = _blocking(telling.reward)
    correct = _blocking(telling.correct)
    void = _blocking(telling.void)
    rewards = _blocking(telling.rewards)
    observe = _blocking(telling.observe)
    recommendation = _blocking(looking.recommendation)
    create = _blocking(managing.create)
    experiment = _blocking(managing.experiment)
    experiments = _blocking(managing.experiments)
    patch = _blocking(managing.patch)
    start = _blocking(managing.start)
    pause = _blocking(managing.pause)
    resume = _blocking(managing.resume)
    conclude = _blocking(managing.conclude)
    reopen = _blocking(managing.reopen)
    archive = _blocking(managing.archive)
    duplicate = _blocking(managing.duplicate)
    delete = _blocking(managing.delete)
    arm = _blocking(managing.arm)
    add_arm = _blocking(managing.add_arm)
    patch_arm = _blocking(managing.patch_arm)

    @contextmanager
    def trial(
        self,
        experiment: str,
        unit: str | None = None,
        *,
        fallback: str | None = None,
        fallback_value: Json = None,
        otherwise: float | None = None,
        timeout: float | None = None,
    ) -> Iterator[Trial]:
        """An arm for a block of code, whose reward is queued. A block that ends well without one has the reward `otherwise`."""
        asked = self.assign(experiment, unit, fallback=fallback, fallback_value=fallback_value, timeout=timeout)
        trial = Trial(asked, self.reward_later)
        yield trial
        trial.finish(otherwise)

    def watch(self, experiment: str) -> Iterator[Recommendation]:
        """The recommendation now, and again on every change; goes on by itself after a broken connection."""
        following = Following(experiment)
        while True:
            trouble: Error | None = None
            try:
                with self._wire.stream(following.call(), CONNECT_SECONDS, SILENT_SECONDS) as pieces:
                    for piece in pieces:
                        yield from following.fed(piece)
            except Error as broken:
                trouble = broken
            time.sleep(following.broken(trouble))

    def flush(self, timeout: float | None = None) -> bool:
        """Send what is queued; True when nothing waits any more."""
        return self._rewards.flush(self._core.timeout if timeout is None else timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Send what is queued and close the connections; True when nothing was left over."""
        is_empty = self._rewards.close(self._core.timeout if timeout is None else timeout)
        self._wire.close()
        return is_empty

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_BothClients):
    """A client for asyncio. `reward_later` is not awaited: it only queues."""

    def _connect(self) -> None:
        self._wire = AsyncWire(self._origin)

    assign = _awaitable(asking.assign)
    assign_many = _awaitable(asking.assign_many)
    assignment = _awaitable(asking.assignment)
    reward = _awaitable(telling.reward)
    correct = _awaitable(telling.correct)
    void = _awaitable(telling.void)
    rewards = _awaitable(telling.rewards)
    observe = _awaitable(telling.observe)
    recommendation = _awaitable(looking.recommendation)
    create = _awaitable(managing.create)
    experiment = _awaitable(managing.experiment)
    experiments = _awaitable(managing.experiments)
    patch = _awaitable(managing.patch)
    start = _awaitable(managing.start)
    pause = _awaitable(managing.pause)
    resume = _awaitable(managing.resume)
    conclude = _awaitable(managing.conclude)
    reopen = _awaitable(managing.reopen)
    archive = _awaitable(managing.archive)
    duplicate = _awaitable(managing.duplicate)
    delete = _awaitable(managing.delete)
    arm = _awaitable(managing.arm)
    add_arm = _awaitable(managing.add_arm)
    patch_arm = _awaitable(managing.patch_arm)

    @asynccontextmanager
    async def trial(
        self,
        experiment: str,
        unit: str | None = None,
        *,
        fallback: str | None = None,
        fallback_value: Json = None,
        otherwise: float | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - a deadline over all tries, kept by the client
    ) -> AsyncIterator[Trial]:
        """An arm for a block of code, whose reward is queued. A block that ends well without one has the reward `otherwise`."""
        asked = await self.assign(experiment, unit, fallback=fallback, fallback_value=fallback_value, timeout=timeout)
        trial = Trial(asked, self.reward_later)
        yield trial
        trial.finish(otherwise)

    async def watch(self, experiment: str) -> AsyncIterator[Recommendation]:
        """The recommendation now, and again on every change; goes on by itself after a broken connection."""
        following = Following(experiment)
        while True:
            trouble: Error | None = None
            try:
                async with self._wire.stream(following.call(), CONNECT_SECONDS, SILENT_SECONDS) as pieces:
                    async for piece in pieces:
                        for seen in following.fed(piece):
                            yield seen
            except Error as broken:
                trouble = broken
            await asyncio.sleep(following.broken(trouble))

    async def flush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - kept by the thread that sends
        """Send what is queued; True when nothing waits any more."""
        return await asyncio.to_thread(self._rewards.flush, self._core.timeout if timeout is None else timeout)

    async def close(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - kept by the thread that sends
        """Send what is queued and close the connections; True when nothing was left over."""
        is_empty = await asyncio.to_thread(self._rewards.close, self._core.timeout if timeout is None else timeout)
        await self._wire.close()
        return is_empty

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
