"""What every use case needs: the database to read from, the writer to change experiments through, and what is shared by looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.application.live.lanes import Lanes
from service.application.live.reader import WritingReader
from service.application.live.shown_findings import ShownFindings
from service.application.live.turns import Turns
from service.application.live.version_cache import VersionCache
from service.application.live.versions import Versions
from service.application.live.watcher import Watcher

if TYPE_CHECKING:
    from service.engine.writer import Writer
    from service.storage.database import Database


@dataclass(frozen=True, slots=True)
class Context(WritingReader):
    """One per process, made when the application starts."""

    versions: Versions
    watcher: Watcher
    lanes: Lanes
    forecasting: Turns = field(default_factory=Turns)
    """Held while a forecast is computed: callers choose how many, a core is all they get, and few wait for it."""
    shown: ShownFindings = field(default_factory=ShownFindings)

    @classmethod
    def over(cls, database: Database, writer: Writer) -> Context:
        """A context with a memory of its own."""
        versions = Versions(database)
        return cls(database, VersionCache(), writer, versions, Watcher(versions), Lanes.over(database))
