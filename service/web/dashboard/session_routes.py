"""Signing in to the dashboard with a key, signing out, and who is signed in."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field

from service.application.commands import sign_in as sessions
from service.application.context import Context
from service.domain.api_keys import digest_of
from service.domain.callers import SCOPES, Caller
from service.errors import Forbidden, Unauthorized
from service.web.access import session_cookies
from service.web.access.credentials import identify
from service.web.api import request_schemas, views
from service.web.api.body import StrictRoute
from service.web.api.parameters import ContextOf, json_response

router = APIRouter(prefix="/dashboard/session", include_in_schema=False, route_class=StrictRoute)
_NEVER_KEPT = {"Cache-Control": "no-store"}


class SignIn(request_schemas.Request):
    """The key to sign in with."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"key": "ba_…"}]})

    key: Annotated[str, Field(min_length=1, max_length=1_000)]


def _state(request: Request, context: Context, caller: Caller | None, *, ended: bool = False) -> dict[str, Any]:
    """What a page must know before it shows anything."""
    named, provider = caller is not None and caller.id is not None, request.app.state.provider
    return {
        "open": context.callers.is_open,
        "provider": None if provider is None else provider.settings.name,
        "ended": ended,
        "signed_in": _person(caller) if caller is not None and named else None,
    }


def _person(caller: Caller) -> dict[str, Any]:
    return {
        "id": caller.id,
        "label": caller.label,
        "scopes": [scope for scope in SCOPES if scope in caller.scopes],
        "experiments": caller.experiments,
        "expires_at": None if caller.expires_at is None else views.time_text(caller.expires_at),
    }


@router.get("")
async def who_is_signed_in(request: Request, context: ContextOf) -> Response:
    """Who is signed in; nobody, where no cookie or none that is good comes with the request."""
    try:
        caller, ended = await identify(request.scope, context.callers), False
    except (Unauthorized, Forbidden):
        caller, ended = None, session_cookies.token_of(request.scope) is not None
    return json_response(_state(request, context, caller, ended=ended), headers=_NEVER_KEPT)


@router.post("")
async def sign_in(request: Request, context: ContextOf, body: SignIn) -> Response:
    """Trade a key for a session, which acts as the key does and ends with it."""
    secret = body.key.encode()
    caller = await _holder_of(context, secret)
    request.app.state.rates.require(caller)  # it counts as any request of the key
    made = await sessions.sign_in(context.database, caller, digest_of(secret))
    await context.callers.renew()
    answer = json_response(_state(request, context, caller), headers=_NEVER_KEPT)
    session_cookies.keep(answer, made.token, tls=session_cookies.needs_tls(request.scope, request.app.state.public_url))
    return answer


async def _holder_of(context: Context, secret: bytes) -> Caller:
    try:
        return await context.callers.identified(secret)
    except Unauthorized as refused:
        words = {"expired": "This key has expired.", "revoked": "This key was revoked."}
        reason = refused.reason or "unknown"
        raise Unauthorized(reason, words.get(reason, "This is no key of this service.")) from refused


async def _is_good(context: Context, token: bytes) -> bool:
    """Is there a session to end? Looked for as any session is: it may have begun a moment ago in another worker."""
    try:
        caller = await context.callers.signed_in(token)
    except Unauthorized:
        return False
    return caller.session is not None  # where there are no keys, whoever comes is nobody in particular


@router.delete("", status_code=204)
async def sign_out(request: Request, context: ContextOf) -> Response:
    """End the session, and let the browser forget it."""
    token = session_cookies.token_of(request.scope)
    if token is not None and await _is_good(context, token):
        await sessions.sign_out(context.database, token)
        await context.callers.renew()
    answer = Response(status_code=204, headers=_NEVER_KEPT)
    session_cookies.forget(answer, tls=session_cookies.needs_tls(request.scope, request.app.state.public_url))
    return answer
