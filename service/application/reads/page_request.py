"""Which page of a list: behind which number, how many entries, of which time."""

from __future__ import annotations

from dataclasses import dataclass

from service.application.reads.time_window import ALWAYS, TimeWindow
from service.domain.limits import FEW_ENTRIES


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page, newest first."""

    before: int | None
    """The number to go on below."""
    size: int
    window: TimeWindow = ALWAYS

    @property
    def limit(self) -> int:
        """One more than asked for tells that another page follows."""
        return self.size + 1

    @property
    def is_long(self) -> bool:
        """Would so many entries keep the event loop from others?"""
        return self.size > FEW_ENTRIES
