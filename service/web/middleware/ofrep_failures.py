"""Failures below /ofrep in the shape that OpenFeature's providers read, whichever layer they come from."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

from service.web.access.credentials import FLAG_STREAM
from service.web.problems import OUR_FAULT
from service.web.request_context import current_request_id

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ROOT, _BELOW = "/ofrep", "/ofrep/"
_FLAG = re.compile(r"/ofrep/v1/evaluate/flags/([^/]+)")
_PROBLEM = b"application/problem+json"
# What providers are told instead of our own codes; anything else about the request is a context that will not do.
_CODES = {
    "malformed_json": "PARSE_ERROR",
    "body_too_large": "PARSE_ERROR",
    "unsupported_media_type": "PARSE_ERROR",
    "incomplete_body": "PARSE_ERROR",
    "unit_required": "TARGETING_KEY_MISSING",
    "invalid_host": "GENERAL",
    "host_not_allowed": "GENERAL",
}
# Kept from the head of our own answer.
_KEPT = {b"retry-after", b"x-request-id", b"www-authenticate", b"connection", b"allow", b"ratelimit", b"ratelimit-policy"}
_WITHOUT_BODY = {401, 403, 429}
# No place, too many requests, no database: for a while. An `EventSource` that is told so by its status never comes back, and the
# stock web provider then evaluates and connects anew every second.
_FOR_A_WHILE = {429, 503}
# In milliseconds. Until then other pages have closed; and those that were sent away together do not come back together.
_COME_BACK = (300_000, 600_000)
# A database that is away for a moment must not leave all pages deaf for minutes.
_COME_BACK_SOON = (5_000, 15_000)
_NO_DATABASE = "database_unavailable"
_SERVERS = 500


class OfrepFailuresMiddleware:
    """Plain ASGI, around all others: a problem becomes a failure of the protocol, everything else passes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass on, and translate. What passes as it is takes no coroutine more."""
        if scope["type"] != "http" or not (scope["path"].startswith(_BELOW) or scope["path"] == _ROOT):
            return self.app(scope, receive, send)
        return self._translated(scope, receive, send)

    async def _translated(self, scope: Scope, receive: Receive, send: Send) -> None:
        head: Message | None = None
        parts: list[bytes] = []
        has_begun = False

        async def send_translated(message: Message) -> None:
            nonlocal head, has_begun
            if message["type"] == "http.response.start" and (b"content-type", _PROBLEM) in message["headers"]:
                head = message
            elif head is None:
                has_begun = True
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    has_begun = True
                    await _send_failure(send, head, json.loads(b"".join(parts)), scope)

        try:
            await self.app(scope, receive, send_translated)
        except Exception:
            if not has_begun:
                named = [(b"x-request-id", current_request_id().encode()), (b"connection", b"close")]
                await _send_failure(send, {"status": _SERVERS, "headers": named}, {"detail": OUR_FAULT}, scope)
            raise  # to be logged, by whoever answers for defects on the other routes


async def _send_failure(send: Send, head: Message, problem: dict[str, Any], scope: Scope) -> None:
    kind = b"application/json"
    if (scope["method"], scope["path"]) == ("GET", FLAG_STREAM) and head["status"] in _FOR_A_WHILE:
        status, kind = 200, b"text/event-stream; charset=utf-8"
        between = _COME_BACK_SOON if problem["code"] == _NO_DATABASE else _COME_BACK
        content = b"retry: %d\n\n" % random.randint(*between)  # noqa: S311 - no secret
    else:
        status, body = translated(head["status"], problem, scope["path"])
        content = b"" if body is None else json.dumps(body).encode()
    headers = [(name, value) for name, value in head["headers"] if name in _KEPT]
    headers.append((b"content-length", b"%d" % len(content)))
    if content:
        headers.append((b"content-type", kind))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def translated(status: int, problem: dict[str, Any], path: str) -> tuple[int, dict[str, str] | None]:
    """Status and body of the failure."""
    if status in _WITHOUT_BODY:
        return status, None
    if status >= _SERVERS:
        return _SERVERS, {"errorDetails": problem["detail"]}
    found = _FLAG.fullmatch(path)
    flag = found[1] if found else ""
    if status == 404:  # noqa: PLR2004 - HTTP's own
        return 404, {"key": flag, "errorCode": "FLAG_NOT_FOUND", "errorDetails": problem["detail"]}
    if status == 405:  # noqa: PLR2004 - HTTP's own
        return 405, {"errorDetails": problem["detail"]}
    return 400, {"key": flag, "errorCode": _CODES.get(problem["code"], "INVALID_CONTEXT"), "errorDetails": problem["detail"]}
