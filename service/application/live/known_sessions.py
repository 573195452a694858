"""Who is signed in, as this worker knows it: every session whose time is not over, by the digest of its token.

Learned with the keys and as often (service/application/live/known_callers.py). Those that were ended lately are kept, so that a
browser that still sends one is refused without a look into the database; but whoever signs in again and again fills no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.domain.api_keys import digest_of
from service.engine.clock import now_microseconds
from service.storage.queries import stored_sessions

if TYPE_CHECKING:
    from service.domain.browser_sessions import BrowserSession
    from service.storage.database import Database
    from service.storage.queries.change_follower import Changes

# Of those that were ended, in memory: the browsers that still send one are few.
_MOST_ENDED = 10_000
# How often those are removed whose time is over, and how long they stay: clocks of hosts differ a little.
SWEEP_SECONDS = 600.0
_KEPT_MICROSECONDS = 3600 * 1_000_000


class KnownSessions:
    """One per worker."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_digest: dict[bytes, BrowserSession] = {}
        self._ended: dict[bytes, None] = {}
        """The digests of those that were ended, in the order in which that was learned."""
        self.changes = stored_sessions.follower()

    def with_token(self, token: bytes) -> BrowserSession | None:
        """The session with this token, good or not."""
        return self._by_digest.get(digest_of(token))

    def is_good(self, digest: bytes) -> bool:
        """Is it a session that nobody has ended, and whose time is not over?"""
        session = self._by_digest.get(digest)
        return session is not None and session.is_good_at(now_microseconds())

    def learn(self, changes: Changes[BrowserSession]) -> None:
        """Know what has changed."""
        if changes.is_anew:
            self._by_digest.clear()
            self._ended.clear()
        for session in changes.rows:
            self._learn(session)
        self.changes.learned(changes)

    def _learn(self, session: BrowserSession) -> None:
        self._by_digest[session.digest] = session
        if session.ended_at is not None:
            self._ended[session.digest] = None
        if len(self._ended) > _MOST_ENDED:
            oldest = next(iter(self._ended))
            del self._ended[oldest]
            self._by_digest.pop(oldest, None)

    async def sweep(self) -> None:
        """Forget those whose time was over long ago, here and in the database."""
        before = now_microseconds() - _KEPT_MICROSECONDS
        for digest in [digest for digest, session in self._by_digest.items() if session.expires_at < before]:
            del self._by_digest[digest]
        async with self._database.writing() as connection:
            await stored_sessions.forget(connection, before)
