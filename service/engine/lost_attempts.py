"""Attempts at a group that were lost on the way: the connection broke, or the database did not answer in time.

A statement whose sender has gone may still be waiting in the database, for a lock perhaps, and be committed later. So it is not
enough to look for its rows: they may come a moment after the look. Under the experiments' locks it is certain. What was written
is there to be seen; what was not never will be, because it was meant for versions that the next attempt is about to move on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.storage.groups import writes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.domain import Changes
    from service.engine.queue import QueuedRequest
    from service.storage.groups.statements import Reads


class LostAttempts:
    """Those of one group: what each would have written, and what its requests would have been told."""

    def __init__(self) -> None:
        self._attempts: list[tuple[list[Changes], list[tuple[QueuedRequest[Any], Any]]]] = []

    def add(self, changed: list[Changes], requests: Sequence[QueuedRequest[Any]]) -> None:
        """One more; an attempt that would have written nothing cannot have been written."""
        if changed:
            self._attempts.append((changed, [(request, request.result) for request in requests]))

    async def restore(self, locked: Reads) -> None:
        """Give the requests of those that were written after all what they came to. To be called under the locks."""
        for changed, results in self._attempts:
            if await writes.is_written(locked, changed):
                for request, result in results:
                    request.result = result
