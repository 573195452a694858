"""What routes take from a request besides its body: the context, the idempotency key, the page.

They are coroutines that wait for nothing, because FastAPI calls a plain function in a thread, which costs more than all they do.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from fastapi import Depends, Header, Path, Query, Request, Response

from service.application.commands.idempotency import Once, Rendered
from service.application.context import Context
from service.application.reads.time_window import TimeWindow
from service.domain import AUDITED
from service.domain.callers import Access, Caller
from service.domain.limits import (
    API_KEY_ID_PATTERN,
    ASSIGNMENT_ID_PATTERN,
    KEY_PATTERN,
    LARGEST_PAGE,
    LONGEST_IDEMPOTENCY_KEY,
    LONGEST_IF_MATCH,
    LONGEST_OBSERVATION_ID,
    LONGEST_UNIT,
    MESSAGE_ID_PATTERN,
    WEBHOOK_ID_PATTERN,
)
from service.engine.clock import microseconds_of
from service.web.access.credentials import CALLER
from service.web.api.body import FINGERPRINT
from service.web.api.json_body import fingerprint
from service.web.api.views import encode
from service.web.problems import BadRequest
from service.web.response_pieces import sent_in_pieces

if TYPE_CHECKING:
    from collections.abc import Mapping

Result = TypeVar("Result")
_TIME: dict[str, Any] = {"max_length": 64, "json_schema_extra": {"format": "date-time"}}


async def context_of(request: Request) -> Context:
    """The process's context, made when the application started."""
    return cast("Context", request.app.state.context)


async def caller_of(request: Request) -> Caller:
    """Who sends the request; its route has found that they may."""
    return cast("Caller", request.scope[CALLER])


async def idempotency_key(
    given: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="Up to 255 printable characters. The same key and body give the same answer, once.",
            json_schema_extra={"minLength": 1, "maxLength": LONGEST_IDEMPOTENCY_KEY, "pattern": "^[ -~]+$"},
        ),
    ] = None,
) -> str | None:
    """The caller's key, if it sent one."""
    if given is not None and not (1 <= len(given) <= LONGEST_IDEMPOTENCY_KEY and given.isascii() and given.isprintable()):
        detail = "An Idempotency-Key has 1 to 255 printable ASCII characters."
        raise BadRequest(422, "validation_failed", detail, [{"pointer": "/header/Idempotency-Key", "detail": detail}])
    return given


async def page_token(
    token: Annotated[
        str | None,
        Query(alias="page_token", max_length=64, description="From the last answer's `next_page_token`."),
    ] = None,
) -> int | None:
    """The number behind an opaque token."""
    if token is None:
        return None
    try:
        number = re.fullmatch(rb"below:(\d{1,18})", base64.urlsafe_b64decode(token.encode()))
        return int(number[1])  # type: ignore[index] # None is a TypeError, caught below
    except (ValueError, TypeError) as broken:
        detail = "This page_token was not given out by us."
        raise BadRequest(422, "validation_failed", detail, [{"pointer": "/query/page_token", "detail": detail}]) from broken


def _microseconds(name: str, given: str | None) -> int | None:
    if given is None:
        return None
    try:
        time = datetime.fromisoformat(given)
    except ValueError as unreadable:
        detail = "A time is written in ISO 8601, as 2026-01-01T12:00:00Z."
        raise BadRequest(422, "validation_failed", detail, [{"pointer": f"/query/{name}", "detail": detail}]) from unreadable
    return microseconds_of(time)


async def time_window(
    since: Annotated[str | None, Query(description="From this time on (ISO 8601; UTC without an offset).", **_TIME)] = None,
    until: Annotated[str | None, Query(description="Before this time.", **_TIME)] = None,
) -> TimeWindow:
    """The part of the past that is asked for."""
    return TimeWindow(_microseconds("since", since), _microseconds("until", until))


_KIND = f"({'|'.join(AUDITED)})"
_KINDS: dict[str, Any] = {"json_schema_extra": {"pattern": f"^{_KIND}(,{_KIND})*$"}, "max_length": 500}


async def audit_kinds(
    given: Annotated[str | None, Query(alias="kind", description="Only these kinds, with commas between them.", **_KINDS)] = None,
) -> tuple[str, ...]:
    """The kinds of events that are asked for; none means all of them."""
    kinds = () if given is None else tuple(given.split(","))
    for kind in kinds:
        if kind not in AUDITED:
            detail = f"The audit log has no events of the kind {kind!r}."
            raise BadRequest(422, "validation_failed", detail, [{"pointer": "/query/kind", "detail": detail}])
    return kinds


ContextOf = Annotated[Context, Depends(context_of)]
IdempotencyKey = Annotated[str | None, Depends(idempotency_key)]
PageToken = Annotated[int | None, Depends(page_token)]
PageSize = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]
Window = Annotated[TimeWindow, Depends(time_window)]
AuditKinds = Annotated[tuple[str, ...], Depends(audit_kinds)]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match", max_length=LONGEST_IF_MATCH, description="Change it only if its ETag is still one of these, else 412."
    ),
]
# Described, not validated: what is not of this form does not exist, and that is 404.
ExperimentKey = Annotated[str, Path(json_schema_extra={"pattern": f"^{KEY_PATTERN}$"})]
CallerOf = Annotated[Caller, Depends(caller_of)]
ArmKey = Annotated[str, Path(json_schema_extra={"pattern": f"^{KEY_PATTERN}$"})]
AssignmentId = Annotated[str, Path(json_schema_extra={"pattern": f"^{ASSIGNMENT_ID_PATTERN}$"})]
ApiKeyId = Annotated[str, Path(json_schema_extra={"pattern": f"^{API_KEY_ID_PATTERN}$"})]
WebhookId = Annotated[str, Path(json_schema_extra={"pattern": f"^{WEBHOOK_ID_PATTERN}$"})]
MessageId = Annotated[str, Path(json_schema_extra={"pattern": f"^{MESSAGE_ID_PATTERN}$"})]
UnitName = Annotated[str, Path(json_schema_extra={"minLength": 1, "maxLength": LONGEST_UNIT})]
ObservationId = Annotated[str, Path(json_schema_extra={"minLength": 1, "maxLength": LONGEST_OBSERVATION_ID})]


async def access_to(caller: CallerOf, key: ExperimentKey) -> Access:
    """The experiment that the path names, and who wants to get at it."""
    return Access(caller, key)


AccessOf = Annotated[Access, Depends(access_to)]


def once(
    request: Request,
    route: str,
    key: str | None,
    *,
    creates: bool | Callable[[Result], bool],
    render: Callable[[Result], bytes],
    note: Callable[[Result], bytes | None] | None = None,
) -> Once[Result]:
    """The idempotency of a creating request; equal JSON counts as an equal body, however it is written."""
    if key is None:
        return Once(route, None, "", creates, render)
    keyed = Once(route, key, request.scope.get(FINGERPRINT) or fingerprint(None), creates, render)
    return keyed if note is None else replace(keyed, note=note)


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return sent_in_pieces(encode(content), status, headers)


def rendered_response(rendered: Rendered, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer that was written in the transaction, or long before."""
    shown = dict(headers or {})
    if rendered.replayed:
        shown["Idempotency-Replayed"] = "true"
    return sent_in_pieces(rendered.written(), 201 if rendered.created else 200, shown)
