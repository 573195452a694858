"""Observations that come as a stream of JSON lines: a part of it, told in batches. Performed in a lane."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.application.commands.import_observations import BatchesUnderWay
from service.application.imports.import_tally import ImportTally
from service.application.imports.observation_files import in_batches
from service.application.imports.observation_lines import json_line
from service.errors import BestArmError

if TYPE_CHECKING:
    from service.application.live.reader import WritingReader
    from service.domain.callers import Access


@dataclass(slots=True)
class ToldLines:
    """What became of the lines of a part, as far as it came."""

    tally: ImportTally = field(default_factory=ImportTally)
    through: int = 0
    """The number of the last line up to which all are durable, or refused; empty ones count."""
    failure: BestArmError | None = None
    """Why it came no further."""


async def tell_lines(worker: WritingReader, access: Access, before: int, part: bytes) -> ToldLines:
    """Tell the lines of a part, which begin behind so many; each batch is durable before the next but one is begun."""
    told = ToldLines(through=before)
    lines = part.split(b"\n")
    if not lines[-1]:
        lines.pop()
    written = (json_line(number, text) for number, text in enumerate(lines, before + 1) if not text.isspace() and text)
    under_way = BatchesUnderWay(told.tally)
    try:
        for batch in in_batches(written):
            await under_way.add(worker.writer, access, batch)
        await under_way.finish()
    except BestArmError as failure:
        await under_way.abandon()
        told.through, told.failure = under_way.through or before, failure
    else:
        told.through = before + len(lines)
    return told
