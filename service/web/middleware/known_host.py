"""Only requests that say, once, which host they mean, and mean this one (service/web/hosts.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.web.problems import problem
from service.web.request_context import name_request
from service.web.request_metrics import count_request

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from service.web.hosts import AllowedHosts


class KnownHostMiddleware:
    """Plain ASGI, and the first of all: what is meant for another host is answered by nobody else here."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        self.app = app
        self.hosts = hosts

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass on, or refuse. What passes takes no coroutine more."""
        if scope["type"] != "http":
            return self.app(scope, receive, send)
        given = [value for name, value in scope["headers"] if name == b"host"]
        if len(given) == 1:
            accepted = self.hosts.accepts(given[0])
        else:  # HTTP/1.0 knew no hosts, and neither do those that still speak it
            accepted = True if not given and scope["http_version"] == "1.0" else None
        if accepted:
            return self.app(scope, receive, send)
        return self._refuse(scope, receive, send, is_host=accepted is not None)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, *, is_host: bool) -> None:
        if not is_host:
            status, code, detail = 400, "invalid_host", "A request has one Host header, with a name and perhaps a port."
        else:
            status, code, detail = 421, "host_not_allowed", "This service does not answer to that name (BESTARM_ALLOWED_HOSTS)."
        name = name_request(next((value for name, value in scope["headers"] if name == b"x-request-id"), b""))
        count_request("other", "other", status, 0.0)
        await problem(status, code, detail, headers={"X-Request-Id": name.decode()})(scope, receive, send)
