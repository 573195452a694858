"""Workers of the service in this process: a writer each on a shared database, with a clock that the test turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from service.application.commands import experiments
from service.application.commands.idempotency import Once
from service.application.context import Context
from service.application.live.known_callers import KnownCallers
from service.application.reads import assignments, recommendation
from service.application.reads.recommendation import Recommendation
from service.application.reads.replay import replay
from service.domain import Arm, Assignment, ConcludeWhen, Experiment, Expiry, PolicySpec, RewardSpec
from service.domain.callers import SERVICE, by_service
from service.domain.limits import STATEMENT_SECONDS
from service.engine.queue import Command, FutureRecipient
from service.engine.writer import Writer
from service.storage.database import Database

Result = TypeVar("Result")

# How many turns of the event loop the second wave comes after the first: before it is on its way, then, and after it.
TURNS = (0, 1, 2, 3, 6)


class Workers:
    """Several workers on one database; `restart` forgets everything that is not stored."""

    def __init__(self, url: str, count: int = 2, group_seconds: float = STATEMENT_SECONDS) -> None:
        self.url, self._group_seconds = url, group_seconds
        self.now = time.time_ns() // 1_000 + 3_600_000_000
        self._count = count
        self._runner = asyncio.Runner()
        self.contexts: list[Context] = []
        self.run(self._open())

    def run(self, doing: Coroutine[Any, Any, Result]) -> Result:
        """Run to the end in the workers' event loop."""
        return self._runner.run(doing)

    async def _open(self) -> None:
        for _ in range(self._count):
            database = Database(self.url, pool_size=4, group_seconds=self._group_seconds)
            writer = Writer(database, queue_limit=4096, clock=lambda: self.now)
            writer.start()
            self.contexts.append(Context.over(database, writer, KnownCallers(database, None, may_be_open=True)))

    async def _close(self) -> None:
        for context in self.contexts:
            await context.lanes.close()
            await context.writer.close()
            await context.database.close()
        self.contexts = []

    def restart(self) -> None:
        """Close all workers and start new ones."""
        self.run(self._close())
        self.run(self._open())

    def close(self) -> None:
        """Close the writers and the databases."""
        self.run(self._close())
        self._runner.close()

    def create(
        self,
        key: str,
        arms: Sequence[tuple[str, float]],
        *,
        policy: PolicySpec | None = None,
        reward: RewardSpec | None = None,
        expiry: Expiry | None = None,
        sticky: bool = False,
        conclude_when: ConcludeWhen | None = None,
    ) -> None:
        """A running experiment with these arms and floors."""
        experiment = Experiment(
            id=0,
            key=key,
            name=key,
            description="",
            policy=policy or PolicySpec(),
            reward=reward or RewardSpec(),
            expiry=expiry,
            sticky=sticky,
            confidence=0.95,
            conclude_when=conclude_when,
            status="running",
            concluded_arm=None,
            created_at=0,
        )
        made = [Arm(position, name, name, None, least) for position, (name, least) in enumerate(arms)]
        once: Once[experiments.Described] = Once("experiments", None, "", creates=True, render=lambda _: b"")
        self.run(experiments.create(self.contexts[0], SERVICE, experiment, made, once))

    def submit(self, key: str, command: Command[Result], worker: int = 0) -> Result:
        """One command, answered."""
        return self.run(self.contexts[worker].writer.submit(by_service(key), command))

    def enqueue(self, key: str, command: Command[Result], worker: int = 0) -> asyncio.Future[Result]:
        """One command, queued at once; to be called in the workers' event loop."""
        answer: FutureRecipient[Result] = FutureRecipient(loop=asyncio.get_running_loop())
        self.contexts[worker].writer.enqueue(SERVICE, key, command, answer)
        return answer

    def submit_together(self, key: str, commands: Sequence[Command[Any]], worker: int = 0) -> list[Any]:
        """Commands that arrive at once; refusals are returned, not raised."""

        async def all_at_once() -> list[Any]:
            writer = self.contexts[worker].writer
            return await asyncio.gather(
                *(writer.submit(by_service(key), command) for command in commands), return_exceptions=True
            )

        return self.run(all_at_once())

    def submit_in_two_waves(
        self, key: str, first: Sequence[Command[Any]], second: Sequence[Command[Any]], turns: int, second_key: str | None = None
    ) -> list[Any]:
        """Some commands, and others that many turns of the event loop later; refusals are returned, not raised."""

        async def waves() -> list[Any]:
            sent = [self.enqueue(key, command) for command in first]
            for _ in range(turns):
                await asyncio.sleep(0)
            sent += [self.enqueue(second_key or key, command) for command in second]
            return await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), 30)

        return self.run(waves())

    def look(self, key: str, worker: int = 0) -> Recommendation:
        """The recommendation."""
        return self.run(recommendation.current(self.contexts[worker], key))

    def assignment(self, key: str, assignment_id: str) -> tuple[Arm, Assignment]:
        """One assignment as it is stored."""
        return self.run(assignments.assignment(self.contexts[0], key, assignment_id))

    def replay(self, key: str) -> int:
        """Replay; the number of events."""
        return self.run(replay(self.contexts[0].database, key)).events
