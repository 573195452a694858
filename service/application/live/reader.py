"""What a read works with: the database and the cache of its process, a worker's or a lane's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.application.live.version_cache import VersionCache
    from service.storage.database import Database


@dataclass(frozen=True, slots=True)
class Reader:
    """The database, and what was computed from versions of experiments. One per process that reads."""

    database: Database
    cache: VersionCache
