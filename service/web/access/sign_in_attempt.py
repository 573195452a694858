"""A sign-in that has begun here and goes on at the identity provider."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """What the browser keeps while somebody is at the provider."""

    state: str
    """Comes back with the browser: nobody else's answer is taken."""
    nonce: str
    """Comes back inside the id token: no other token is taken."""
    verifier: str
    """Shows the provider that whoever trades the code is who asked for it (PKCE)."""
    next: str
    """The page that they wanted."""

    @classmethod
    def new(cls, wanted: str) -> SignInAttempt:
        """With secrets of its own."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, wanted)

    @property
    def challenge(self) -> str:
        """What the provider is told of the verifier beforehand."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
