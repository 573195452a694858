"""What a read works with, in a worker or in a lane, and what a change needs besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.application.live.version_cache import VersionCache
    from service.engine.writer import Writer
    from service.storage.database import Database


@dataclass(frozen=True, slots=True)
class Reader:
    """The database, and what was computed from versions of experiments. One per process that reads."""

    database: Database
    cache: VersionCache


@dataclass(frozen=True, slots=True)
class WritingReader(Reader):
    """And the writer to change experiments through. A lane's process has one of its own, as another worker has."""

    writer: Writer
