"""Signing in to the dashboard, and out. The token is in the answer and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.domain.api_keys import digest_of
from service.domain.browser_sessions import ACCOUNT_PREFIX, BrowserSession, basis_of, new_token
from service.domain.limits import MOST_SESSIONS, SESSION_SECONDS
from service.engine.clock import now_microseconds
from service.errors import Conflict, Forbidden
from service.storage.queries import stored_sessions

if TYPE_CHECKING:
    from service.domain.callers import Caller
    from service.storage.database import Database

_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session, and the only copy of its token."""

    token: str
    session: BrowserSession


async def sign_in(database: Database, caller: Caller, ground: bytes) -> NewSession:
    """A session that acts as this caller while the ground that it rests on is there: a key's digest, a provider's settings."""
    if caller.id is None:
        raise Conflict("This service is open: there is nobody to sign in as.")
    if caller.origins is not None:
        raise Forbidden("A public key cannot sign in: everybody can read it.")
    token = new_token()
    session = _new(caller, token.encode(), ground)
    async with database.writing() as connection:
        oldest = await stored_sessions.oldest_beyond(connection, caller.id, MOST_SESSIONS, session.created_at)
        if oldest is not None:
            await stored_sessions.end(connection, oldest, session.created_at)
        await stored_sessions.insert_session(connection, session)
    return NewSession(token, session)


async def sign_out(database: Database, token: bytes) -> None:
    """The session is over: here at once, for every other worker within two seconds. Again, it changes nothing."""
    async with database.writing() as connection:
        await stored_sessions.end(connection, digest_of(token), now_microseconds())


def _new(caller: Caller, token: bytes, ground: bytes) -> BrowserSession:
    now = now_microseconds()
    ends = now + SESSION_SECONDS * _MICROSECONDS
    name = caller.id or ""
    is_account = name.startswith(ACCOUNT_PREFIX)
    return BrowserSession(
        digest=digest_of(token),
        caller=name,
        basis=basis_of(token, ground),
        label=caller.label if is_account else None,
        scopes=caller.scopes if is_account else None,
        created_at=now,
        expires_at=ends if caller.expires_at is None else min(ends, caller.expires_at),
    )
