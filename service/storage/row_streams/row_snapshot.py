"""What can be read of one snapshot of a database. Statements name their parameters `$1`, `$2`, … on both engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = Any
"""The values of a row, in order and by the names of their columns."""


class RowSnapshot(Protocol):
    """The database as it is at one moment: all statements see the same."""

    async def fetch(self, statement: str, *values: object) -> Sequence[Row]:
        """All rows of a statement that finds few."""
        ...

    def stream(self, statement: str, *values: object, at_once: int) -> AsyncIterator[Sequence[Row]]:
        """The rows of a statement that finds many, at most so many at once."""
        ...
