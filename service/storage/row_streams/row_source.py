"""A database to stream rows from: what it takes to open it anywhere.

The drivers are used directly: SQLAlchemy alone would take more memory than an export needs in all (measured, 24 MB).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from service.storage.row_streams.row_snapshot import RowConnection


class RowSource(msgspec.Struct, frozen=True):
    """Where a database is and how to get in; it travels to other processes as JSON, by ways that nobody else can read."""

    engine: Literal["sqlite", "postgresql"]
    arguments: dict[str, Any]

    def connection(self) -> AbstractAsyncContextManager[RowConnection]:
        """A connection to it, for as long as the block lasts."""
        if self.engine == "sqlite":
            from service.storage.row_streams.sqlite_rows import sqlite_connection  # noqa: PLC0415 - one driver is enough

            return sqlite_connection(**self.arguments)
        from service.storage.row_streams.postgres_rows import postgres_connection  # noqa: PLC0415 - its driver is an extra

        return postgres_connection(self.arguments)
