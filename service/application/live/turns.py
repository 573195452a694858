"""Turns: work of which one piece is done at a time while a bounded number waits."""

from __future__ import annotations

import asyncio

from service.domain.limits import MOST_WAITING_READS
from service.errors import Overloaded


class Turns:
    """`async with` it to wait for a turn and have it; `Overloaded` if too many wait already."""

    def __init__(self, most_waiting: int = MOST_WAITING_READS) -> None:
        self._most_waiting = most_waiting
        self._turn = asyncio.Lock()
        self._inside = 0

    @property
    def is_full(self) -> bool:
        """Do so many wait that the next one is refused?"""
        return self._inside > self._most_waiting

    async def __aenter__(self) -> None:
        if self.is_full:
            raise Overloaded("Too many expensive requests wait already; try again in a moment.")
        self._inside += 1
        try:
            await self._turn.acquire()
        except BaseException:
            self._inside -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._turn.release()
        self._inside -= 1
