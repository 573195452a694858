"""A part of the past: from one time on, and up to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.storage.queries import time_bounds

if TYPE_CHECKING:
    from service.domain import Progress
    from service.storage.database import Connection


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Microseconds since 1970; `since` is inside, `until` is not. None means without end."""

    since: int | None = None
    until: int | None = None

    async def draws(self, connection: Connection, progress: Progress, before: int | None) -> tuple[int, int]:
        """The draws inside that are below the number to go on from: the first, and the first that is not."""
        e, last = progress.experiment.id, progress.draws
        first = 1 if self.since is None else await time_bounds.first_draw_at(connection, e, self.since, last)
        end = last + 1 if self.until is None else await time_bounds.first_draw_at(connection, e, self.until, last)
        return first, end if before is None else min(end, before)

    async def events(self, connection: Connection, progress: Progress, before: int | None) -> tuple[int, int]:
        """The events inside that are below the number to go on from: the first, and the first that is not."""
        e, last = progress.experiment.id, progress.version
        first = 1 if self.since is None else await time_bounds.first_event_at(connection, e, self.since, last)
        end = last + 1 if self.until is None else await time_bounds.first_event_at(connection, e, self.until, last)
        return first, end if before is None else min(end, before)


ALWAYS = TimeWindow()
