"""What every use case needs: the database to read from, the writer to change experiments through, and what is shared by looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.kept import Kept
from service.application.versions import Versions
from service.application.watching import Watcher

if TYPE_CHECKING:
    from service.application.writer import Writer
    from service.storage.database import Database


@dataclass(frozen=True, slots=True)
class Context:
    """One per process, made when the application starts."""

    database: Database
    writer: Writer
    versions: Versions
    watcher: Watcher
    kept: Kept

    @classmethod
    def over(cls, database: Database, writer: Writer) -> Context:
        """A context with a memory of its own."""
        versions = Versions(database)
        return cls(database, writer, versions, Watcher(versions), Kept())
