"""The cookie that holds the token of a session: not for scripts, not for other sites, not for the air where there is TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from service.domain.limits import SESSION_SECONDS
from service.web.hosts import is_loopback, name_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.responses import Response

NAME: Final = "bestarm_session"
# A browser takes a name that begins so only from this very host, and only with TLS: no neighbour can put another in its place.
GUARDED_PREFIX: Final = "__Host-"


def cookies_in(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """All cookies of a request; of two by one name, the first."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name == b"cookie":
            for part in value.split(b";"):
                cookie, _, content = part.strip().partition(b"=")
                found.setdefault(cookie, content)
    return found


def token_in(headers: Iterable[tuple[bytes, bytes]], *, tls: bool) -> bytes | None:
    """The token of a session; None if the request has none. With TLS, what has the plain name may be a neighbour's gift."""
    return cookies_in(headers).get(_name(tls=tls).encode())


def token_of(scope: Mapping[str, Any]) -> bytes | None:
    """The token of a session that comes with a request. Most come without any cookie, and need no look at the rest."""
    if not any(name == b"cookie" for name, _ in scope["headers"]):
        return None
    return token_in(scope["headers"], tls=needs_tls(scope, scope["app"].state.public_url))


def _name(*, tls: bool) -> str:
    return GUARDED_PREFIX + NAME if tls else NAME


def needs_tls(scope: Mapping[str, Any], public_url: str) -> bool:
    """May the cookie go over TLS alone? As the public address says; without one, everywhere but on this machine itself."""
    if public_url:
        return public_url.startswith("https://")
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return scope["scheme"] == "https" or not is_loopback(name_in(host) or "")


def keep(response: Response, token: str, *, tls: bool) -> None:
    """Let the browser keep the session."""
    response.set_cookie(_name(tls=tls), token, max_age=SESSION_SECONDS, path="/", secure=tls, httponly=True, samesite="strict")


def forget(response: Response, *, tls: bool) -> None:
    """Let the browser forget it."""
    response.delete_cookie(_name(tls=tls), path="/", secure=tls, httponly=True, samesite="strict")
