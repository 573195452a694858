"""Keys of the API: what is stored of them, which is never the secret itself."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from service.domain.callers import Caller, Scope, granted

ApiKeyKind: TypeAlias = Literal["secret", "public"]
ApiKeyStatus: TypeAlias = Literal["active", "expired", "revoked"]
PREFIXES: Final[dict[ApiKeyKind, str]] = {"secret": "ba_", "public": "bapub_"}
# Eight characters tell a hundred thousand keys apart, and say nothing of the 256 bits that follow.
_NAME_BYTES = 6
_SECRET_BYTES = 32
_SECRET = re.compile(rb"(ba|bapub)_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored."""

    id: str
    kind: ApiKeyKind
    prefix: str
    """How its secret begins: enough to recognise it, and to find it."""
    digest: bytes
    label: str
    scopes: frozenset[Scope]
    experiments: tuple[str, ...] | None
    origins: tuple[str, ...] | None
    created_at: int
    created_by: str | None
    """The id of the key that made it; None where it was the operator."""
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None
    """To the minute."""
    successor: str | None = None
    """The key that takes its place."""

    def status_at(self, now: int) -> ApiKeyStatus:
        """Whether the key is good at a time, and if not, why."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    def caller(self) -> Caller:
        """Who calls with it."""
        return Caller(granted(self.scopes), self.id, self.label, self.experiments, self.origins, self.expires_at)


def digest_of(secret: bytes) -> bytes:
    """What is stored and compared: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret).digest()


def may_be_secret(secret: bytes) -> bool:
    """Is it of the form of a secret?"""
    return _SECRET.fullmatch(secret) is not None


def new_secret(kind: ApiKeyKind) -> tuple[str, str]:
    """A new secret, and its prefix."""
    prefix = PREFIXES[kind] + secrets.token_hex(_NAME_BYTES)
    return prefix, f"{prefix}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def new_key_id() -> str:
    """How a key is named where its secret must not be."""
    return f"key_{secrets.token_hex(10)}"
