"""What routes take from a request besides its body: the context, the idempotency key, the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from fastapi import Depends, Header, Query, Request, Response

from service.application.context import Context
from service.application.idempotency import Once, Rendered
from service.web.problems import BadRequest
from service.web.views import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

Result = TypeVar("Result")
_LONGEST_KEY = 255


def context_of(request: Request) -> Context:
    """The process's context, made when the application started."""
    return cast("Context", request.app.state.context)


def idempotency_key(
    given: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="Up to 255 printable characters. The same key and body give the same answer, once.",
        ),
    ] = None,
) -> str | None:
    """The caller's key, if it sent one."""
    if given is not None and not (1 <= len(given) <= _LONGEST_KEY and given.isascii() and given.isprintable()):
        detail = "An Idempotency-Key has 1 to 255 printable ASCII characters."
        raise BadRequest(422, "validation_failed", detail, [{"pointer": "/header/Idempotency-Key", "detail": detail}])
    return given


def page_token(
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


def token_below(number: int) -> str:
    """An opaque token for the page below this number."""
    return base64.urlsafe_b64encode(b"below:%d" % number).decode()


ContextOf = Annotated[Context, Depends(context_of)]
IdempotencyKey = Annotated[str | None, Depends(idempotency_key)]
PageToken = Annotated[int | None, Depends(page_token)]
PageSize = Annotated[int, Query(ge=1, le=100)]


@dataclass(frozen=True, slots=True)
class Paged:
    """A page: one more item than asked for tells whether another page follows."""

    items: list[Any]
    next_page_token: str | None

    @staticmethod
    def of(found: list[Any], size: int, number_of: Callable[[Any], int]) -> Paged:
        """Cut the extra item off and make the token from the last one shown."""
        shown = found[:size]
        return Paged(shown, token_below(number_of(shown[-1])) if len(found) > size else None)


def once(
    request: Request,
    route: str,
    key: str | None,
    status: int,
    render: Callable[[Result], bytes],
    *,
    note: Callable[[Result], bytes | None] | None = None,
) -> Once[Result]:
    """The idempotency of a creating request; equal JSON counts as an equal body, whatever its spacing."""
    if key is None:
        return Once(route, None, "", status, render)
    canonical = json.dumps(getattr(request, "_json", None), sort_keys=True, separators=(",", ":"))
    keyed = Once(route, key, hashlib.sha256(canonical.encode()).hexdigest(), status, render)
    return keyed if note is None else replace(keyed, note=note)


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(encode(content), status, dict(headers or {}), "application/json")


def rendered_response(rendered: Rendered, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer that was written in the transaction, or long before."""
    shown = dict(headers or {})
    if rendered.replayed:
        shown["Idempotency-Replayed"] = "true"
    return Response(rendered.written(), rendered.status, shown, "application/json")
