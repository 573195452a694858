"""Every error in one shape: application/problem+json (RFC 9457) with a stable machine code and the request's id."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from service import errors
from service.web.access.route_scopes import OPEN
from service.web.problem_schema import Problem
from service.web.request_context import current_request_id
from service.web.request_metrics import count_auth_failure, count_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from starlette.routing import BaseRoute

MEDIA_TYPE = "application/problem+json"
log = structlog.get_logger(__name__)

# Each class of service/errors.py: its status and its code. Classes that only group others stand in for new members.
STATUS: dict[type[errors.BestArmError], tuple[int, str]] = {
    errors.NotFound: (404, "not_found"),
    errors.ExperimentNotFound: (404, "experiment_not_found"),
    errors.ArmNotFound: (404, "arm_not_found"),
    errors.AssignmentNotFound: (404, "assignment_not_found"),
    errors.ObservationNotFound: (404, "observation_not_found"),
    errors.UnitNotFound: (404, "unit_not_found"),
    errors.ApiKeyNotFound: (404, "key_not_found"),
    errors.WebhookNotFound: (404, "webhook_not_found"),
    errors.DeliveryNotFound: (404, "delivery_not_found"),
    errors.Conflict: (409, "conflict"),
    errors.ExperimentExists: (409, "experiment_exists"),
    errors.ArmExists: (409, "arm_exists"),
    errors.VersionConflict: (412, "version_conflict"),
    errors.IllegalTransition: (409, "illegal_transition"),
    errors.ExperimentNotRunning: (409, "experiment_not_running"),
    errors.ExperimentPruned: (409, "experiment_pruned"),
    errors.LastActiveArm: (409, "last_active_arm"),
    errors.ArmConcluded: (409, "arm_concluded"),
    errors.NoRecommendation: (409, "no_recommendation"),
    errors.TooManyArms: (409, "too_many_arms"),
    errors.RewardConflict: (409, "reward_conflict"),
    errors.Invalid: (422, "invalid"),
    errors.InvalidValue: (422, "validation_failed"),
    errors.UnitRequired: (422, "unit_required"),
    errors.NotSticky: (422, "not_sticky"),
    errors.IdempotencyKeyReused: (422, "idempotency_key_reused"),
    errors.Unauthorized: (401, "unauthorized"),
    errors.Forbidden: (403, "forbidden"),
    errors.RateLimited: (429, "rate_limited"),
    errors.TooManyStreams: (429, "too_many_streams"),
    errors.Overloaded: (503, "overloaded"),
    errors.ExtraMissing: (501, "extra_missing"),
    errors.IdentityProviderUnavailable: (502, "identity_provider_unavailable"),
    errors.DatabaseUnavailable: (503, "database_unavailable"),
    errors.ExperimentLocked: (503, "experiment_locked"),
    errors.DatabaseLocked: (503, "database_locked"),
    errors.DatabaseNotMigrated: (503, "database_not_migrated"),
}
# What every operation may answer: to what is not HTTP or names no host, to another method on its path, to what does not arrive in
# time, for another host, to a parameter that it does not know, to a large head, when it is our fault, and when too many come.
_ANYWHERE = (400, 405, 408, 421, 422, 431, 500, 503)
# What needs a key: no good one, not for this or from another site's page, and too many requests.
_KEYED = (401, 403, 429)
_OPEN_PATHS = {path for _, path in OPEN}
# Mistakes that an answer names: whoever has made more begins with these.
_MOST_FIELDS = 100
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_RETRY_AFTER = {"Retry-After": "1"}
_LATER = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
_AUTHENTICATE = {"WWW-Authenticate": "Bearer"}


class BadRequest(Exception):  # noqa: N818 - a refusal at the edge, before any use case
    """The request cannot be read: wrong type of content, not JSON, too large, or values that JSON should not hold."""

    def __init__(self, status: int, code: str, detail: str, fields: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.fields = status, code, detail, fields


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    fields: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem answer."""
    count_problem(code)
    return Response(content_of(status, code, detail, current_request_id(), fields), status, dict(headers or {}), MEDIA_TYPE)


def content_of(status: int, code: str, detail: str, request_id: str, fields: Sequence[Mapping[str, str]] = ()) -> bytes:
    """A problem as it is sent."""
    content: dict[str, Any] = {
        "type": f"urn:bestarm:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
    }
    if fields:
        content["errors"] = list(fields)
    # Escaped to ASCII, so that a surrogate in a caller's own words cannot break the answer to it.
    return json.dumps(content).encode()


def problem_for(error: errors.BestArmError, headers: Mapping[str, str] | None = None, *, besides: str = "") -> Response:
    """The answer to an error of ours, with what else is to be said."""
    status, code = STATUS[type(error)]
    if error.reason is not None:
        count_auth_failure(error.reason)
    fields = [{"pointer": error.pointer, "detail": str(error)}] if isinstance(error, errors.InvalidValue) else []
    detail = f"{error} {besides}".strip()
    return problem(status, code, detail, fields=fields, headers={**_headers_of(error, status), **(headers or {})})


def _headers_of(error: errors.BestArmError, status: int) -> Mapping[str, str]:
    """What tells a client how to go on."""
    if isinstance(error, errors.Unauthorized):
        return _AUTHENTICATE
    if isinstance(error, errors.RateLimited):
        return {
            "Retry-After": str(error.seconds),
            "RateLimit-Policy": f'"key";q={error.quota};w={error.window}',
            "RateLimit": f'"key";r=0;t={error.seconds}',
        }
    return _RETRY_AFTER if status in _LATER else {}


OUR_FAULT = "Something went wrong on our side; the request id names it in the log."


def problem_of_ours(path: str, error: Exception, headers: Mapping[str, str] | None = None) -> Response:
    """The answer when something went wrong that should not have: the log has the details, the caller the request's id."""
    log.error("unexpected", path=path, exc_info=error)
    return problem(500, "internal_error", OUR_FAULT, headers=headers)


def install(app: FastAPI) -> None:
    """Let the application answer every failure as a problem."""

    @app.exception_handler(errors.BestArmError)
    async def ours(_request: Request, error: errors.BestArmError) -> Response:
        return problem_for(error)

    @app.exception_handler(BadRequest)
    async def unreadable(_request: Request, error: BadRequest) -> Response:
        return problem(error.status, error.code, error.detail, fields=error.fields)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        fields = [_field(one) for one in error.errors()[:_MOST_FIELDS]]
        return problem(422, "validation_failed", fields[0]["detail"] if fields else "Invalid request.", fields=fields)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_").replace("-", "_")
        headers = dict(error.headers or {})
        if request.scope["path"] == "*":  # the server as a whole, which has no options
            headers["Allow"] = ", ".join(sorted(_METHODS))
            return problem(405, "method_not_allowed", "Method Not Allowed", headers=headers)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(sorted(_allowed(request)))
        return problem(error.status_code, code, str(error.detail), headers=headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(_request: Request, _error: ClientDisconnect) -> Response:
        return problem(400, "incomplete_body", "The connection was closed before the body was there.")  # nobody reads it

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        # Starlette answers these outside of all middleware, so the name is put on here; the server closes the connection then.
        return problem_of_ours(request.url.path, error, {"X-Request-Id": current_request_id(), "Connection": "close"})


def each_route(routes: Sequence[BaseRoute]) -> Iterator[BaseRoute]:
    """All routes, those of included routers in place of these; the routers know their whole paths."""
    for route in routes:
        included = getattr(route, "original_router", None)
        yield from (route,) if included is None else each_route(included.routes)


def _allowed(request: Request) -> set[str]:
    """The methods of all routes of this path; the framework would name those of the first."""
    allowed = set[str]()
    # What is mounted has taken its own part of the path away by now.
    scope = {**request.scope, "root_path": request.scope.get("app_root_path", "")}
    for route in each_route(request.app.routes):
        if route.matches(scope)[0] is not Match.NONE:
            allowed |= getattr(route, "methods", None) or {"GET"}  # what is mounted has files
    return allowed | {"HEAD"} if "GET" in allowed else allowed


def _field(error: Mapping[str, Any]) -> dict[str, str]:
    """A pydantic error as a JSON pointer into the body (or the name of a parameter) and a sentence."""
    where, *path = error["loc"]
    steps = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    pointer = steps if where == "body" else f"/{where}{steps}"
    return {"pointer": pointer, "detail": sentence_of(error)}


def sentence_of(error: Mapping[str, Any]) -> str:
    """What a pydantic error says, without its name for the kind of error where the sentence is ours."""
    ours = error.get("ctx", {}).get("error") if error["type"] == "value_error" else None
    return str(ours or error["msg"])


def describe(document: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document with the shape of problems in it, also where the framework would show its own."""
    shapes = document["components"]["schemas"]
    for framework_s in ("HTTPValidationError", "ValidationError"):
        shapes.pop(framework_s, None)
    problem_shape = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    shapes |= problem_shape.pop("$defs") | {"Problem": problem_shape}
    document["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer"},
        "named_key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path.startswith("/ofrep/"):  # it has a shape of its own for failures, which its routes name
                operation["security"] = [{"key": []}, {"named_key": []}]
                operation["responses"].pop("422", None)
                continue
            if "application/json" in operation["responses"].get("422", {}).get("content", {}):
                del operation["responses"]["422"]
            needs_key = path not in _OPEN_PATHS
            if needs_key:
                operation["security"] = [{"key": []}]
            for status, answer in documented(*_ANYWHERE, *(_KEYED if needs_key else ())).items():
                operation["responses"].setdefault(str(status), answer)
    return document


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problem answers of a route, for OpenAPI."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }
