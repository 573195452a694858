"""Import: past data told as observations, batch after batch, each durable before the next but one is begun.

Every line has an id, so whatever was counted once is a duplicate when it comes again: an import that was cut short is repeated
whole. It is made by a writer of its own, as by another worker, in batches that leave the experiment's traffic its turns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from service.application.commands.tell import Observe
from service.application.imports.observation_files import opened_file
from service.application.imports.observation_lines import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.commands.tell import TellResult
    from service.application.imports.file_survey import PastData, Report
    from service.application.imports.import_tally import ImportTally
    from service.application.imports.observation_lines import Line
    from service.domain.callers import Access
    from service.engine.writer import Writer

# One is being written while the next is decided.
_IN_FLIGHT = 2


class BatchesUnderWay:
    """The batches that are queued and not answered yet, in their order."""

    def __init__(self, tally: ImportTally) -> None:
        self._tally = tally
        self.through = 0
        """The number of the last line up to which all are durable or refused."""
        self._batches: deque[tuple[Sequence[Line], asyncio.Task[list[TellResult]]]] = deque()

    async def add(self, writer: Writer, access: Access, lines: Sequence[Line]) -> None:
        """Queue one more, and wait for the first if there are too many."""
        command = Observe([line.item for line in lines])
        self._batches.append((lines, asyncio.create_task(writer.submit(access, command))))
        await asyncio.sleep(0)  # it is in the queue now
        if len(self._batches) == _IN_FLIGHT:
            await self._settle()

    async def finish(self) -> None:
        """Return when every line is stored."""
        while self._batches:
            await self._settle()

    async def abandon(self) -> None:
        """One has failed: the others are not counted. One that takes effect all the same is a duplicate when it is repeated."""
        for _, answer in self._batches:
            await asyncio.gather(answer, return_exceptions=True)
        self._batches.clear()

    async def _settle(self) -> None:
        lines, answer = self._batches.popleft()
        self._tally.add([line.number for line in lines], await answer)
        self.through = lines[-1].number


async def import_observations(
    writer: Writer, access: Access, data: PastData, source: str, *, tally: ImportTally, report: Report
) -> None:
    """Tell every line of the file. The tally has what is known to be durable, also where this fails."""
    under_way = BatchesUnderWay(tally)
    try:
        with opened_file(data.path, data.format, data.columns) as file:
            for batch in file.batches():
                await under_way.add(writer, access, named(batch, source))
                report(file.position, file.length)
        await under_way.finish()
    except BaseException:
        await under_way.abandon()
        raise
