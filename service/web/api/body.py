"""The routes of the API: who may use one, what its path and its query may hold, and how much of a body is read.

FastAPI would take NaN, 1e400, lone surrogates and any content type. Here a body is read once, checked whole
(service/web/api/json_body.py), and only then validated against its schema.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from service.domain.callers import Caller, Scope
from service.domain.limits import (
    KEY_PATTERN,
    LARGE_BODY_BYTES,
    MOST_BATCH_BODY_BYTES,
    MOST_BODY_BYTES,
    MOST_HELD_BODY_BYTES,
    MOST_HELD_BODY_BYTES_OF_KEY,
    MOST_LARGE_BODIES,
    SMALL_BODY_BYTES,
)
from service.errors import ArmNotFound, ExperimentNotFound, Forbidden, Overloaded, Unauthorized
from service.web.access.credentials import CALLER
from service.web.access.route_scopes import OPEN, ROUTE_SCOPES
from service.web.api.json_body import fingerprint, objection_to_text, parse_json, refuse, refuse_crowd
from service.web.problems import BadRequest

# Where the fingerprint of a body is left for those who repeat answers.
FINGERPRINT = "bestarm.fingerprint"
_KEY = re.compile(KEY_PATTERN)
_LARGE = {
    "/v1/experiments",
    "/v1/experiments/{key}/assignments/batch",
    "/v1/experiments/{key}/rewards",
    "/v1/experiments/{key}/observations",
}


class BodyMemory:
    """The bodies that a process holds at once: the large ones bounded in bytes, and a few read and handled at a time.

    Small ones are taken whatever others send. No key may take all of the room, as it could by sending slowly.
    """

    def __init__(self) -> None:
        self.large = asyncio.Semaphore(MOST_LARGE_BODIES)
        self._held: dict[str | None, int] = {}
        """By the id of the caller; of callers without one together."""

    @contextmanager
    def holding(self, caller: Caller | None) -> Iterator[Callable[[int], None]]:
        """How to say that so many bytes of a body are there by now; at the end they are let go."""
        mine, who = 0, None if caller is None else caller.id

        def hold(size: int) -> None:
            nonlocal mine
            if size <= SMALL_BODY_BYTES:
                return
            more, of_caller = size - mine, self._held.get(who, 0)
            is_too_much = who is not None and of_caller + more > MOST_HELD_BODY_BYTES_OF_KEY
            if is_too_much or sum(self._held.values()) + more > MOST_HELD_BODY_BYTES:
                raise Overloaded("Too many large bodies are being sent; try again in a moment.")
            mine, self._held[who] = size, of_caller + more

        try:
            yield hold
        finally:
            if mine and self._held[who] == mine:
                del self._held[who]
            elif mine:
                self._held[who] -= mine


class StrictRoute(APIRoute):
    """A route whose path, query and body were checked whole before its handler sees them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's own handler."""
        handler = super().get_route_handler()
        limit = MOST_BATCH_BODY_BYTES if self.path in _LARGE else MOST_BODY_BYTES
        required = bool(self.body_field and self.body_field.field_info.is_required())
        parameters = _query_parameters(self.dependant)

        async def with_body(request: Request) -> Response:
            streamed = self.answer_to_stream(request)
            if streamed is not None:
                return await streamed
            memory: BodyMemory = request.app.state.body_memory
            caller: Caller | None = request.scope.get(CALLER)
            is_public = caller is not None and caller.origins is not None
            with memory.holding(caller) as hold:
                most = min(limit, MOST_BODY_BYTES) if is_public else limit
                body = request._body = await read_limited(request, most, hold)  # noqa: SLF001 - Starlette's own cache
                if len(body) <= LARGE_BODY_BYTES:
                    if body or required:
                        self._keep(request, body)
                    await _check_again(request)
                    return await handler(request)
                async with memory.large:
                    await asyncio.to_thread(self._keep_large, request, body)
                    await _check_again(request)
                    return await handler(request)

        # An id of any text may hold slashes, as the last part of a path; no other part may.
        parts, any_text = self.path.count("/"), self.path.endswith(":any_text}")

        scopes = {ROUTE_SCOPES.get((method, self.path)) for method in self.methods or ()}
        is_open = {(method, self.path) for method in self.methods or ()} <= OPEN

        async def strict(request: Request) -> Response:
            if not is_open:
                _check_access(request, scopes)
            raw = request.scope.get("raw_path") or b""
            if b"%" in raw and any(b"%2f" in part.lower() for part in raw.split(b"/", parts)[: parts if any_text else None]):
                raise HTTPException(404)  # it would be read as the path of another route
            key, arm = request.path_params.get("key", "a"), request.path_params.get("arm", "a")
            if not _KEY.fullmatch(key):
                raise ExperimentNotFound(key)  # before it meets a database that could not even compare it
            if not _KEY.fullmatch(arm):
                raise ArmNotFound(key, arm)
            _check_query(request, parameters)
            return await (handler if self.body_field is None else with_body)(request)

        return strict

    def _keep(self, request: Request, body: bytes) -> None:
        """Leave the parsed body where FastAPI looks for it, and its fingerprint where an idempotency key needs it."""
        parsed = request._json = self.read(request, body)  # noqa: SLF001 - Starlette's own cache
        if "idempotency-key" in request.headers:
            request.scope[FINGERPRINT] = fingerprint(parsed)

    def _keep_large(self, request: Request, body: bytes) -> None:
        """The same beside the event loop, and validated there, too: FastAPI takes what is valid already as it is."""
        refuse_crowd(body)
        self._keep(request, body)
        if self.body_field is not None and not self._embed_body_fields:
            valid, errors = self.body_field.validate(request._json, loc=("body",))  # noqa: SLF001 - Starlette's own cache
            if errors:
                raise RequestValidationError(errors)
            request._json = valid  # noqa: SLF001 - Starlette's own cache

    def answer_to_stream(self, request: Request) -> Coroutine[Any, Any, Response] | None:  # noqa: ARG002 - for routes that look
        """How a body is answered that this route reads as it comes; None means that it is read whole."""
        return None

    def read(self, request: Request, body: bytes) -> Any:  # noqa: ANN401 - any JSON
        """The body as Python objects, as far as FastAPI looks at them; all of it where there is an idempotency key."""
        return parse_json(body, request.headers.get("content-type"))


def _query_parameters(dependant: Dependant) -> set[str]:
    """The names that a route and what it depends on declare."""
    named = {parameter.alias for parameter in dependant.query_params}
    return named.union(*map(_query_parameters, dependant.dependencies))


def _check_access(request: Request, scopes: Collection[Scope | None]) -> None:
    """Refuse a caller who may not use this route, or may not see its experiment; a route that needs nothing known, everybody."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is None:
        raise Unauthorized("missing")
    for scope in scopes:
        if scope is None:
            raise Forbidden("This route is not open to anybody.")
        caller.require(scope, request.path_params.get("key"))


async def _check_again(request: Request) -> None:
    """Refuse a caller whose key was revoked while the body came in, which may take a minute."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is not None:
        await request.app.state.context.callers.require_still_taken(caller)


def _check_query(request: Request, parameters: set[str]) -> None:
    """Refuse what the route does not know, what comes twice, and what no database could compare."""
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        objection = objection_to_text(name) or objection_to_text(value)
        if name not in parameters:
            objection = objection or "There is no such parameter here."
        if name in seen:
            objection = objection or "This parameter is given twice."
        if objection:
            refuse(("query", name), objection)
        seen.add(name)


async def read_limited(request: Request, limit: int, hold: Callable[[int], None]) -> bytes:
    """The whole body, refused as soon as it is known to be too large."""
    announced = request.headers.get("content-length", "0")
    body, size = bytearray(), int(announced) if announced.isdigit() else 0
    if size <= limit:
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                break
            hold(size)
            body += chunk
    if size > limit:
        raise BadRequest(413, "body_too_large", f"The body is larger than {limit // 1024:,} KiB.")
    return bytes(body)
