"""Pages of named origins may evaluate flags and reward units, with a key that is made for pages. Nothing else is for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PATHS = re.compile(r"/ofrep/.*|/v1/experiments/[^/]+/(rewards|units/[^/]+/reward)")
_PREFLIGHT = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type, idempotency-key, if-none-match, x-api-key, x-request-id"),
    (b"access-control-max-age", b"600"),
    (b"content-length", b"0"),
]
_EXPOSED = (b"access-control-expose-headers", b"ETag, Retry-After, X-Request-Id")


class CrossOriginMiddleware:
    """Plain ASGI: what a browser has to be told so that it lets such a page read the answer. Only there where origins are set."""

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self.app = app
        self.origins = frozenset(origin.lower().encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and say who may read it."""
        if scope["type"] != "http" or not _PATHS.fullmatch(scope["path"]):
            await self.app(scope, receive, send)
            return
        origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
        allowed = [(b"vary", b"Origin")]
        if origin is not None and origin.lower() in self.origins:
            allowed.append((b"access-control-allow-origin", origin))
            if scope["method"] == "OPTIONS" and any(name == b"access-control-request-method" for name, _ in scope["headers"]):
                await send({"type": "http.response.start", "status": 204, "headers": [*allowed, *_PREFLIGHT]})
                await send({"type": "http.response.body", "body": b""})
                return
            allowed.append(_EXPOSED)

        async def send_readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *allowed]}
            await send(message)

        await self.app(scope, receive, send_readable)
