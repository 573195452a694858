"""The version of an experiment, read after the question was asked, by one statement for all who ask meanwhile.

A look must show every change that was acknowledged before it arrived, so it may share only a statement that begins after it.
No timer: the next statement serves whoever came while the last one ran.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from service.domain.limits import KEY_PATTERN
from service.errors import DatabaseUnavailable, ExperimentNotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import TypeAlias

    from service.domain import ExperimentVersion
    from service.storage.database import Database

    _Answer: TypeAlias = "asyncio.Future[ExperimentVersion | None]"

_KEY = re.compile(KEY_PATTERN)


class Versions:
    """One per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, list[_Answer]] = {}
        self._task: asyncio.Task[None] | None = None

    async def current(self, key: str) -> ExperimentVersion:
        """The version now. What cannot be a key does not join the others: a database might refuse the whole statement for it."""
        if not _KEY.fullmatch(key):
            raise ExperimentNotFound(key)
        # One of its own, because whoever hangs up cancels it.
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(answer)
        if self._task is None:
            self._task = asyncio.create_task(self._serve(), name="versions")
        found = await answer
        if found is None:
            raise ExperimentNotFound(key)
        return found

    async def of(self, keys: Collection[str]) -> dict[str, ExperimentVersion]:
        """The versions of many at once; unknown keys are left out."""
        return await self._database.version_reader.versions_of(keys)

    async def _serve(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, {}
            if not await self._answer(asked):
                for key, answers in asked.items():  # what fails for all may be the fault of one
                    await self._answer({key: answers}, alone=True)
        self._task = None

    async def _answer(self, asked: dict[str, list[_Answer]], *, alone: bool = False) -> bool:
        """Answer all of them by one statement; False if it failed and they should be tried one by one."""
        try:
            found = await self.of(asked)
        except Exception as failure:  # noqa: BLE001 - it is the askers' to handle
            if not (alone or len(asked) == 1 or isinstance(failure, DatabaseUnavailable)):
                return False
            for answer in _still_wanted(asked.values()):
                answer.set_exception(failure)
        else:
            for key, answers in asked.items():
                for answer in _still_wanted([answers]):
                    answer.set_result(found.get(key))
        return True


def _still_wanted(asked: Iterable[list[_Answer]]) -> Iterator[_Answer]:
    """Those whose askers have not gone."""
    return (answer for answers in asked for answer in answers if not answer.done())
