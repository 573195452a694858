"""Who may call, as this worker knows it: every key that is good, by its digest, and never older than two seconds.

Keys are few and change rarely, so each worker has them all in memory and asks, twice a second, what has changed since. A request
costs no look into the database then, whether its key is good or made up. What was read longer ago than `_TRUSTED_SECONDS` is not
believed any more: a key that was revoked elsewhere is refused in time even where the database answers slowly, or not at all.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from service.application.live.known_sessions import KnownSessions
from service.domain.api_keys import digest_of, may_be_secret
from service.domain.browser_sessions import ACCOUNT_PREFIX, may_be_token
from service.domain.callers import ALL_SCOPES, ANYBODY, Caller
from service.engine.clock import now_microseconds
from service.errors import BestArmError, DatabaseUnavailable, Unauthorized
from service.storage.queries import stored_api_keys
from service.storage.queries.change_follower import look_at_both

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain.api_keys import ApiKey
    from service.domain.browser_sessions import BrowserSession
    from service.storage.database import Database
    from service.storage.queries.change_follower import Changes

# How often a worker asks for changes.
REFRESH_SECONDS = 0.5
# A revocation takes effect within two seconds everywhere: what is older than this is read again before it counts.
_TRUSTED_SECONDS = 1.5
# A key that is not known may have been made a moment ago and is looked for; but whoever guesses waits together with others.
_LOOK_AGAIN_SECONDS = 0.25
# The use of a key is written down at most so often.
_USE_WRITTEN_SECONDS = 60.0
ADMIN_ID = "admin"
ADMIN_LABEL = "BESTARM_ADMIN_KEY"


def _nothing() -> None:
    """What happens by default when it is found that the service is open."""


class KnownCallers:
    """One per worker."""

    def __init__(
        self,
        database: Database,
        admin_key: str | None,
        provider: bytes | None = None,
        *,
        may_be_open: bool = False,
        when_open: Callable[[], None] = _nothing,
    ) -> None:
        """`may_be_open` if only those may reach the service who may do everything, as long as there are no keys."""
        self._database = database
        self._admin = None if not admin_key else digest_of(admin_key.encode())
        self._provider = provider
        """The digest of the settings by which accounts of an identity provider sign in."""
        self._may_be_open = may_be_open and self._admin is None and provider is None
        self._when_open = when_open
        self.is_open = False
        """There are no keys, and never were any, as far as is known: whoever reaches the service may do everything."""
        self.sessions = KnownSessions(database)
        self._by_digest: dict[bytes, Caller] = {}
        self._digests: dict[str, bytes] = {}
        """By the id of the key."""
        self._revoked: set[bytes] = set()
        self._changes = stored_api_keys.follower()
        self._trusted_until = 0.0
        self._known_as_of = -math.inf
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at = 0.0
        """When the last refresh began."""
        self._looking_again: asyncio.Task[None] | None = None
        self._after_look: list[Callable[[], None]] = []
        self._used: set[str] = set()
        self._use_written: dict[str, float] = {}
        if self._admin is not None:
            self._by_digest[self._admin] = Caller(ALL_SCOPES, ADMIN_ID, ADMIN_LABEL)

    def known(self, digest: bytes | None) -> Caller | None:
        """The caller with this digest, or anybody where there are no keys, if that is known without a look into the database."""
        if time.monotonic() > self._trusted_until:
            return None
        if self.is_open:
            return ANYBODY
        caller = self._by_digest.get(digest) if digest is not None else None
        if caller is None or (caller.expires_at is not None and caller.expires_at <= now_microseconds()):
            return None
        self._used.add(caller.id or "")
        return caller

    async def identified(self, secret: bytes | None) -> Caller:
        """Who sends this secret; refused if it is none that is good now. Public keys are never anybody's."""
        digest = None if secret is None else digest_of(secret)
        if digest is not None and self._admin is not None and hmac.compare_digest(digest, self._admin):
            return self._by_digest[digest]
        await self.require_fresh()
        caller = self.known(digest)
        if caller is not None:
            return caller
        if secret is None or digest is None:
            raise Unauthorized("missing")
        reason = self._reason_to_refuse(secret, digest)
        if reason is None:
            await self._look_again()
            await self.require_fresh()
            caller = self.known(digest)
            if caller is not None:
                return caller
        raise Unauthorized(reason or "unknown")

    def refusal_of(self, secret: bytes, *, is_new: bool) -> Unauthorized | None:
        """Why this secret is refused, as far as is known here; None if it is good, or has to be looked up.

        One that is new to us may be a new key's.
        """
        digest = digest_of(secret)
        if time.monotonic() > self._trusted_until or self.known(digest) is not None:
            return None
        reason = self._reason_to_refuse(secret, digest) or (None if is_new else "unknown")
        return None if reason is None else Unauthorized(reason)

    def look_again_before(self, then: Callable[[], None]) -> None:
        """Call it after the next look into the database, which all who wait share: the key may have been made a moment ago."""
        self._after_look.append(then)
        if self._looking_again is None or self._looking_again.done():
            self._looking_again = asyncio.create_task(self._look_again_for_all(), name="known callers, looked at again")

    async def _look_again_for_all(self) -> None:
        while self._after_look:
            await asyncio.sleep(max(0.0, self._refreshed_at + _LOOK_AGAIN_SECONDS - time.monotonic()))
            waiting, self._after_look = self._after_look, []
            try:
                with suppress(BestArmError):  # whoever waits is told by the long way
                    await self._look_again()
            finally:  # whatever went wrong, nobody waits for ever
                for then in waiting:
                    then()

    async def signed_in(self, token: bytes) -> Caller:
        """Who has the session with this token; refused if it is none that is good now."""
        await self.require_fresh()
        if self.is_open:
            return ANYBODY
        session = self.sessions.with_token(token)
        if session is None and may_be_token(token):
            await self._look_again()
            session = self.sessions.with_token(token)
        caller = None if session is None else self._caller_by(session, token)
        if caller is None:
            raise Unauthorized("unknown" if session is None else "expired", "Your session has ended: sign in again.")
        self._used.add("" if session is None or session.scopes is not None else session.caller)
        return caller

    def _caller_by(self, session: BrowserSession, token: bytes) -> Caller | None:
        """Who signed in, as they may act now; None if the session, or what it rests on, is over."""
        now, account = now_microseconds(), session.account()
        ground = self._provider if account else self._admin if session.caller == ADMIN_ID else self._digests.get(session.caller)
        if ground is None or not session.is_good_at(now) or not session.rests_on(token, ground):
            return None
        caller = account or self._by_digest[ground]
        if caller.expires_at is not None and caller.expires_at <= now:
            return None
        ends = session.expires_at if caller.expires_at is None else min(caller.expires_at, session.expires_at)
        return replace(caller, session=session.digest, expires_at=ends)

    def _reason_to_refuse(self, secret: bytes, digest: bytes) -> str | None:
        """Why this secret will not become good, whatever happens; None if it may belong to a key that is new."""
        if digest in self._by_digest:
            return "expired"
        if digest in self._revoked:
            return "revoked"
        return None if may_be_secret(secret) else "malformed"

    def still_takes(self, caller: Caller) -> bool:
        """Is what somebody began with this key, or in this session, still theirs to go on with?"""
        if caller.session is not None and not self.sessions.is_good(caller.session):
            return False
        if caller.id is None:
            return self.is_open
        if caller.id == ADMIN_ID or caller.id.startswith(ACCOUNT_PREFIX):
            return True
        held = self._by_digest.get(self._digests.get(caller.id, b""))
        return held is not None and (held.expires_at is None or held.expires_at > now_microseconds())

    async def require_still_taken(self, caller: Caller) -> None:
        """Refuse what somebody began a while ago, if it is not theirs to go on with by what is known now."""
        if caller.id == ADMIN_ID and caller.session is None:
            return  # not stored, so good whatever becomes of the database
        await self.require_fresh()
        if not self.still_takes(caller):
            raise Unauthorized("revoked")

    def digest_of_key(self, key_id: str | None) -> bytes | None:
        """The digest of a key that is good, by the key's id."""
        return self._admin if key_id == ADMIN_ID else self._digests.get(key_id or "")

    async def require_fresh(self) -> None:
        """Know what is known now, if what is known is too old. A database that is too slow for that lets nobody in."""
        if time.monotonic() > self._trusted_until:
            await self.refresh()
            if time.monotonic() > self._trusted_until:
                raise DatabaseUnavailable("The database is too slow to tell which keys are good; try again in a moment.")

    async def _look_again(self) -> None:
        """Wait for a refresh that begins after now, but not for one of one's own at every guess."""
        asked = time.monotonic()
        await asyncio.sleep(max(0.0, self._refreshed_at + _LOOK_AGAIN_SECONDS - asked))
        await self._refresh_since(asked)

    async def renew(self) -> None:
        """Know what was just stored: a look that is under way may have come too early.

        If the database is away by now, whoever stored it is told nothing of that: it is stored, and learned later, as elsewhere.
        """
        with suppress(DatabaseUnavailable):
            await self._refresh_since(time.monotonic())

    async def _refresh_since(self, asked: float) -> None:
        while self._known_as_of < asked:
            await self.refresh()

    async def refresh(self) -> None:
        """Learn what has changed; one at a time, shared by all who wait for it."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshed_at = time.monotonic()
            self._refreshing = asyncio.create_task(self._refresh(), name="known callers")
        await asyncio.shield(self._refreshing)

    async def round(self) -> None:
        """What is done twice a second: learn what has changed, and write down what was used."""
        await self.refresh()
        now = time.monotonic()
        used, self._used = self._used - {"", ADMIN_ID}, set()
        due = {key for key in used if now - self._use_written.get(key, -_USE_WRITTEN_SECONDS) >= _USE_WRITTEN_SECONDS}
        if due:
            async with self._database.writing() as connection:
                await stored_api_keys.note_use(connection, due, now_microseconds(), int(_USE_WRITTEN_SECONDS * 1_000_000))
            self._use_written |= dict.fromkeys(due, now)

    async def start(self) -> None:
        """Know the keys before the first request, if the database is there."""
        with suppress(BestArmError):
            await self.refresh()

    async def _refresh(self) -> None:
        began = time.monotonic()
        async with self._database.reading_apart() as connection:
            sessions, keys = await look_at_both(connection, self.sessions.changes, self._changes)
        self.sessions.learn(sessions)
        self._learn(keys)
        self._known_as_of, self._trusted_until = began, began + _TRUSTED_SECONDS

    def _learn(self, changes: Changes[ApiKey]) -> None:
        """Know what has changed, all at once: nobody finds a good key missing meanwhile."""
        if changes.is_anew:
            for digest in self._digests.values():
                self._by_digest.pop(digest, None)
            self._digests.clear()
            self._revoked.clear()
        for key in changes.rows:
            self._learn_key(key)
        self._changes.learned(changes)
        was_open, self.is_open = self.is_open, self._may_be_open and changes.number == 0
        if self.is_open and not was_open:
            self._when_open()

    def _learn_key(self, key: ApiKey) -> None:
        if key.revoked_at is None:
            self._by_digest[key.digest] = key.caller()
            self._digests[key.id] = key.digest
        else:
            self._by_digest.pop(self._digests.pop(key.id, b""), None)
            self._revoked.add(key.digest)
