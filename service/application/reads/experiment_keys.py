"""The keys of all experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.storage.queries import stored_experiments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.storage.database import Database


async def all_keys(database: Database) -> Sequence[str]:
    """Oldest first, without those that are on their way out or in."""
    async with database.reading() as connection:
        return await stored_experiments.keys(connection)
