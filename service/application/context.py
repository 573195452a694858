"""What every use case needs: the database to read from and the writer to change experiments through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.application.writer import Writer
    from service.storage.database import Database


@dataclass(frozen=True, slots=True)
class Context:
    """One per process, made when the application starts."""

    database: Database
    writer: Writer
