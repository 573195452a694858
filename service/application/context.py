"""What every use case needs: the database to read from, the writer to change experiments through, and what is shared by looks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.application.live.lanes import Lanes
from service.application.live.reader import Reader
from service.application.live.shown_findings import ShownFindings
from service.application.live.version_cache import VersionCache
from service.application.live.versions import Versions
from service.application.live.watcher import Watcher

if TYPE_CHECKING:
    from service.engine.writer import Writer
    from service.storage.database import Database


@dataclass(frozen=True, slots=True)
class Context(Reader):
    """One per process, made when the application starts."""

    writer: Writer
    versions: Versions
    watcher: Watcher
    lanes: Lanes
    forecasting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Held while a forecast is computed: callers choose how many, and a core is all they get."""
    shown: ShownFindings = field(default_factory=ShownFindings)

    @classmethod
    def over(cls, database: Database, writer: Writer) -> Context:
        """A context with a memory of its own."""
        versions = Versions(database)
        return cls(database, VersionCache(), writer, versions, Watcher(versions), Lanes.over(database))
