"""Who sends a request is known before anything else of it is read, let alone its body."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from service.errors import BestArmError
from service.web.access.credentials import admit, identify
from service.web.access.route_scopes import OPEN
from service.web.problems import problem_for

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

# All that shows or changes something of an experiment. Pages are the same for everybody, and what they show comes from here.
_GUARDED = re.compile(r"/(v1|ofrep|dashboard|metrics)(/|$)")


class KnownCallerMiddleware:
    """Plain ASGI: a request without a good key is answered here, at little cost. What a key may do is for the route to say."""

    def __init__(self, app: ASGIApp, state: Any) -> None:  # noqa: ANN401 - Starlette's State
        self.app = app
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        if scope["type"] == "http" and _GUARDED.match(scope["path"]) and (scope["method"], scope["path"]) not in OPEN:
            try:
                admit(scope, await identify(scope, self.state.context.callers), self.state.rates)
            except BestArmError as refused:
                await problem_for(refused)(scope, receive, send)
                return
        await self.app(scope, receive, send)
