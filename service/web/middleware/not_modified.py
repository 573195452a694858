"""Viewers that have the newest state already, answered 304 without the framework; everything else is passed on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from service.domain.limits import KEY_PATTERN
from service.errors import BestArmError
from service.web.access.credentials import CALLER, admit, identify, identify_at_once
from service.web.etags import VERSION_READ, etag_of, matches
from service.web.middleware.same_origin import wants_what_is_not_theirs
from service.web.request_context import name_request
from service.web.request_metrics import count_request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PATH = re.compile(rf"/v1/experiments/({KEY_PATTERN})/(recommendation|charts/(means|traffic|certainty)\.svg)")


@dataclass(frozen=True, slots=True)
class _Answered:
    """The route of a request that did not reach the router, left in its scope as the router would."""

    path: str


# As FastAPI spells them: both ways count under one name.
_RECOMMENDATION = _Answered("/v1/experiments/{key}/recommendation")
_CHART = _Answered("/v1/experiments/{key}/charts/{chart}.svg")


class NotModifiedMiddleware:
    """ASGI: looks at the version, and only at the version, of a request that says which one it knows."""

    def __init__(self, app: ASGIApp, state: Any) -> None:  # noqa: ANN401 - Starlette's State
        self.app = app
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 304 or pass on."""
        # Whether a query is good is for the route to say, which answers 304 as well.
        plain = scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]
        asked = _PATH.fullmatch(scope["path"]) if plain else None
        headers: dict[bytes, bytes] = dict(scope["headers"]) if asked else {}
        known = headers.get(b"if-none-match")
        if asked is None or known is None or wants_what_is_not_theirs(scope):
            await self.app(scope, receive, send)
            return
        began = perf_counter()
        try:
            callers, is_plain = self.state.context.callers, len(headers) == len(scope["headers"])
            caller = (identify_at_once(scope, headers, callers) if is_plain else None) or await identify(scope, callers)
            admit(scope, caller, self.state.rates)
            caller.require("read", asked[1])
            version = await self.state.context.versions.current(asked[1])
            scope[VERSION_READ] = version
            etag = etag_of(version)
        except BestArmError:  # the handler words it
            etag = None
        if etag is None or not matches(known.decode("latin-1"), etag):
            await self.app(scope, receive, send)
            return
        name = name_request(headers.get(b"x-request-id", b""))
        scope["route"] = route = _RECOMMENDATION if asked[2] == "recommendation" else _CHART
        scope["path_params"] = {"key": asked[1], "chart": asked[3]}
        count_request("GET", route.path, 304, perf_counter() - began, scope.get(CALLER))
        answer = [(b"etag", etag.encode()), (b"cache-control", b"no-cache"), (b"x-request-id", name)]
        await send({"type": "http.response.start", "status": 304, "headers": answer})
        await send({"type": "http.response.body", "body": b""})
