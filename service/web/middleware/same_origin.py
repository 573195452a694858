"""Other sites must not change anything: a browser says where a request comes from, and here it is believed.

The API takes bodies only as JSON, which a form of another site cannot send; but starting or archiving needs no body. Clients
that are not browsers send neither header and are not concerned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.web.problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN = frozenset({b"same-origin", b"none"})


def is_foreign(headers: list[tuple[bytes, bytes]]) -> bool:
    """Does a browser say that another site sends this?"""
    site = origin = host = None
    for name, value in headers:
        if name == b"sec-fetch-site":
            site = value
        elif name == b"origin":
            origin = value
        elif name == b"host":
            host = value
    if site is not None:
        return site not in _OWN
    return origin is not None and origin.partition(b"://")[2] != host


class SameOriginMiddleware:
    """Plain ASGI, because it runs for every request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on whatever only reads, and what does not come from another site."""
        if scope["type"] == "http" and scope["method"] not in _SAFE and is_foreign(scope["headers"]):
            refused = problem(403, "cross_site_request", "A page of another site may not change anything here.")
            await refused(scope, receive, send)
            return
        await self.app(scope, receive, send)
