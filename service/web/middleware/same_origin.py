"""Other sites must not change anything, nor show what is here: a browser says where a request comes from, and is believed.

The API takes bodies only as JSON, which a form of another site cannot send; but starting or archiving needs no body. What a page
of another site reads its browser keeps from it, but not pictures, nor how large and how late an answer is. Whoever follows a link
from there is served. Clients that are not browsers send none of these headers and are not concerned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.errors import Unauthorized
from service.web.access.credentials import FLAG_STREAM, is_public, secret_of
from service.web.problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_READS = frozenset({"GET", "HEAD"})
_OWN = frozenset({b"same-origin", b"none"})
_CROSS_SITE = (b"sec-fetch-site", b"cross-site")
_LINK = (b"sec-fetch-mode", b"navigate")


def is_foreign(headers: list[tuple[bytes, bytes]]) -> bool:
    """Does a browser say that another site sends this? If it comes twice, whatever speaks against it counts."""
    sites = [value for name, value in headers if name == b"sec-fetch-site"]
    if sites:
        return not _OWN.issuperset(sites)
    host = next((value for name, value in headers if name == b"host"), None)
    return any(value.partition(b"://")[2] != host for name, value in headers if name == b"origin")


def wants_what_is_not_theirs(scope: Scope) -> bool:
    """Does a page of another site want what is not for it? Preflights are answered by what follows."""
    headers = scope["headers"]
    if scope["method"] in _READS:
        return _CROSS_SITE in headers and _LINK not in headers and scope["path"] != FLAG_STREAM
    return scope["method"] != "OPTIONS" and is_foreign(headers) and not _has_public_key(scope)


def _has_public_key(scope: Scope) -> bool:
    """A key that is made for pages says itself of which origins; whether it is good, and for this one, is looked at next."""
    try:
        return is_public(secret_of(scope))
    except Unauthorized:
        return False


class SameOriginMiddleware:
    """Plain ASGI, because it runs for every request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is not from a page of another site."""
        if scope["type"] == "http" and wants_what_is_not_theirs(scope):
            refused = problem(403, "cross_site_request", "A page of another site may not read or change anything here.")
            await refused(scope, receive, send)
            return
        await self.app(scope, receive, send)
