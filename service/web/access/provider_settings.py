"""How accounts of an identity provider sign in, as the operator has set it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from service.domain.callers import SCOPES, Scope
from service.web.hosts import is_loopback


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """How accounts of an identity provider sign in."""

    issuer: str
    client_id: str
    client_secret: str | None
    redirect_uri: str
    requested: str
    """The scopes of OpenID Connect that are asked for, which are not ours."""
    groups_claim: str
    groups: dict[str, frozenset[Scope]]
    """What the members of a group may do."""

    @property
    def name(self) -> str:
        """What people call it."""
        return urlsplit(self.issuer).hostname or self.issuer

    @property
    def ground(self) -> bytes:
        """What a session by it rests on: other settings end it."""
        groups = sorted((name, sorted(scopes)) for name, scopes in self.groups.items())
        return hashlib.sha256(repr((self.issuer, self.client_id, self.groups_claim, groups)).encode()).digest()


def is_safe_address(url: str) -> bool:
    """May secrets be sent there? By TLS, or to this machine itself."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def groups_in(text: str) -> dict[str, frozenset[Scope]]:
    """`admins=admin,analysts=read,analysts=manage` as groups and what their members may do."""
    groups: dict[str, frozenset[Scope]] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        group, _, wanted = (side.strip() for side in pair.rpartition("="))
        scope = next((known for known in SCOPES if known == wanted), None)
        if not group or scope is None:
            raise ValueError(f"BESTARM_OIDC_SCOPES is pairs of a group and a scope ({', '.join(SCOPES)}), as `admins=admin`.")
        groups[group] = groups.get(group, frozenset()) | {scope}
    return groups
