"""What pages that evaluate all their flags wait for: a flag that opted in was concluded, paused, changed, or opted out.

Draws and rewards move no answer that was given, so they are not heard here. Whoever waits asks once a second, and those who may
see the same flags share the answer.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from service.application.live.version_cache import Cached, Subject
from service.storage.queries import bulk_flags

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from service.application.context import Context
    from service.domain.callers import Caller

_EVERY_SECONDS = 1.0
# A silent connection is closed by many a proxy after 30 or 60 seconds.
_SILENT_ROUNDS = 15


async def state_of_flags(context: Context, among: tuple[str, ...] | None) -> str:
    """A fingerprint of the flags that a caller may see: it is another one as soon as what they are was changed."""

    async def make() -> Cached[str]:
        async with context.database.reading() as connection:
            states = await bulk_flags.states_of_flags(connection, among)
        text = repr(states)
        return Cached(0, hashlib.sha256(text.encode()).hexdigest()[:16], len(text))

    return (await context.cache.within((Subject.FLAGS, among), _EVERY_SECONDS / 2, make)).content


async def follow(context: Context, caller: Caller, known: str) -> AsyncGenerator[str | None, None]:
    """The fingerprint whenever it is another one; None when nothing changed for a while. Ends with the process or the key."""
    silent = 0
    while not context.watcher.is_closed:
        await asyncio.sleep(_EVERY_SECONDS)
        now = await state_of_flags(context, caller.experiments)
        await context.callers.require_still_taken(caller)  # last, so that nobody hears what became of a flag after their key
        silent += 1
        if now != known:
            known, silent = now, 0
            yield now
        elif silent >= _SILENT_ROUNDS:
            silent = 0
            yield None
