"""Every answer carries X-Request-Id: the caller's if it sent a sane one, else a new one. Logs carry it, too."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING

from service.application.randomness import random_63_bits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SANE = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_request_id: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """The id of the request being answered."""
    return _request_id.get()


def name_of(given: bytes) -> bytes:
    """A request's name: the caller's if it is sane, else a new one."""
    return given if given and _SANE.fullmatch(given) else b"%016x" % random_63_bits()


def name_request(given: bytes) -> bytes:
    """The name of the request that is being answered from here on."""
    name = name_of(given)
    _request_id.set(name.decode())
    return name


class RequestIdMiddleware:
    """Plain ASGI, because it runs for every request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name the request, pass it on, and put the name on the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        name = name_request(given)

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", name)]
            await send(message)

        await self.app(scope, receive, send_named)
