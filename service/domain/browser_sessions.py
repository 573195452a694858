"""Sessions of the dashboard: a key, or an account elsewhere, traded for a token that a browser keeps in a cookie."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

from service.domain.callers import Caller, Scope, granted

ACCOUNT_PREFIX: Final = "oidc:"
"""How the id of an account begins that an identity provider vouches for."""
LONGEST_LABEL: Final = 100
# A subject is up to 255 characters; what is longer than this, or not plain, is named by its hash.
_PLAIN_SUBJECT = re.compile(r"[!-~]{1,64}")
_TOKEN_BYTES = 32
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A session as it is stored, which is without its token."""

    digest: bytes
    caller: str
    """The id of whoever signed in: a key, the administrator's key, or an account."""
    basis: bytes
    """What it rests on, the key's digest or the provider's settings, keyed by the token: nobody else can try guesses at it."""
    label: str | None
    """Of an account. A key has its own, as it is now."""
    scopes: frozenset[Scope] | None
    created_at: int
    expires_at: int
    ended_at: int | None = None

    def is_good_at(self, now: int) -> bool:
        """Has nobody ended it, and is its time not over?"""
        return self.ended_at is None and now < self.expires_at

    def rests_on(self, token: bytes, ground: bytes) -> bool:
        """Is this what it was given for?"""
        return hmac.compare_digest(self.basis, basis_of(token, ground))

    def account(self) -> Caller | None:
        """Who calls, where that is an account; None where it is a key."""
        return None if self.scopes is None else Caller(granted(self.scopes), self.caller, self.label)


def basis_of(token: bytes, ground: bytes) -> bytes:
    """What is stored of the ground that a session rests on."""
    return hmac.digest(token, ground, "sha256")


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def may_be_token(token: bytes) -> bool:
    """Is it of the form of a token?"""
    return _TOKEN.fullmatch(token) is not None


def account_id(subject: str) -> str:
    """How the history names an account."""
    plain = _PLAIN_SUBJECT.fullmatch(subject) is not None
    return ACCOUNT_PREFIX + (subject if plain else hashlib.sha256(subject.encode()).hexdigest())
