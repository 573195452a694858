"""A file of past data, looked through before anything is imported: is every line good, which arms are there, in which order.

Ids of lines without one are made of the file's content, so a file that is mended later is another file. That is why it is
looked through first, and nothing of it is imported while a line is bad.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.application.commands.tell import TellResult
from service.application.imports.import_tally import ImportTally
from service.application.imports.observation_files import opened_file
from service.application.imports.observation_lines import invalid
from service.domain.limits import MOST_ARMS
from service.errors import ArmNotFound, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from service.application.commands.tell import ObservationItem
    from service.application.imports.file_columns import FileColumns
    from service.domain import RewardSpec
    from service.domain.file_formats import FileFormat

Report = Callable[[int, int], None]
"""Called with how far a file has been read, and how long it is."""
_READABLE = TellResult("recorded")


@dataclass(frozen=True, slots=True)
class PastData:
    """A file, how it is written, and which columns of it are meant."""

    path: Path
    format: FileFormat
    columns: FileColumns

    def digest(self) -> str:
        """The file's content in a word: half of its SHA-256."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Judge:
    """What the lines are held against."""

    key: str
    reward: RewardSpec
    arms: Collection[str] | None
    """The keys that they may name; None means any."""

    def objection_to(self, item: ObservationItem) -> TellResult | None:
        """Why the experiment would not take it, whatever else has been told."""
        if self.arms is not None and item.arm not in self.arms:
            return TellResult("not_found", str(ArmNotFound(self.key, item.arm)))
        objection = self.reward.objection_to(item.reward)
        return None if objection is None else invalid(objection)


@dataclass(slots=True)
class Survey:
    """What is in a file."""

    tally: ImportTally = field(default_factory=ImportTally)
    arms: dict[str, None] = field(default_factory=dict)
    """In the order in which they come, where any may come."""
    late: int = 0
    """Lines whose time is before that of a line above them."""


def survey(data: PastData, judge: Judge, report: Report) -> Survey:
    """Look the file through."""
    found, latest = Survey(), None
    with opened_file(data.path, data.format, data.columns) as file:
        for lines in file.batches():
            results = []
            for _, item, at in lines:
                if isinstance(item, TellResult):
                    results.append(item)
                    continue
                if judge.arms is None:
                    found.arms[item.arm] = None
                results.append(judge.objection_to(item) or _READABLE)
                if at is not None:
                    found.late += latest is not None and at < latest
                    latest = at if latest is None else max(at, latest)
            if len(found.arms) > MOST_ARMS:
                raise InvalidValue("/file", f"The file names more than {MOST_ARMS:,} arms, more than an experiment may have.")
            found.tally.add([line.number for line in lines], results)
            report(file.position, file.length)
    return found
