"""Signing in to the dashboard with an account of an identity provider: the way there, and the way back."""

from __future__ import annotations

import hmac
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse

from service.application.commands import sign_in as sessions
from service.errors import BestArmError, Unauthorized
from service.web.access import attempt_cookies, session_cookies
from service.web.access.sign_in_attempt import SignInAttempt
from service.web.api.parameters import ContextOf
from service.web.dashboard.pages import HEADERS
from service.web.problems import STATUS
from service.web.request_metrics import count_auth_failure, count_problem

if TYPE_CHECKING:
    from service.web.access.identity_provider import IdentityProvider

# Not a strict route: a provider may add parameters of its own to its answer.
router = APIRouter(prefix="/dashboard/session/oidc", include_in_schema=False)
_PAGE = (Path(__file__).parent / "pages" / "refused.html").read_text()
_NEVER_KEPT = {"Cache-Control": "no-store"}
_PLAIN_CODE = re.compile(r"[a-z_]{1,60}")
Parameter = Annotated[str, Query(max_length=4_000)]


@router.get("")
async def begin(request: Request, next: Parameter = "/") -> Response:  # noqa: A002 - the usual name of it
    """Send the browser to the provider."""
    provider = _provider_of(request)
    attempt = SignInAttempt.new(attempt_cookies.own_page(next))
    try:
        away = RedirectResponse(await provider.address_to_sign_in(attempt), 303, _NEVER_KEPT)
    except BestArmError as refused:
        return _refusal(refused)
    attempt_cookies.keep(away, attempt, tls=_tls(request))
    return away


@router.get("/callback")
async def come_back(
    request: Request, context: ContextOf, state: Parameter = "", code: Parameter = "", error: Parameter = ""
) -> Response:
    """Take the provider's word for who it is, and go on to the page that was wanted."""
    provider, tls = _provider_of(request), _tls(request)
    attempt = attempt_cookies.attempt_in(request.scope["headers"], tls=tls)
    try:
        if attempt is None or not hmac.compare_digest(attempt.state.encode(), state.encode()):
            raise Unauthorized("state", "This sign-in was not begun in this browser, or too long ago. Begin again.")
        if error or not code:
            reason = error if _PLAIN_CODE.fullmatch(error) else "no reason given"
            raise Unauthorized("provider", f"The identity provider did not let you in: {reason}.")
        account = await provider.account(code, attempt)
        made = await sessions.sign_in(context.database, account, provider.settings.ground)
        await context.callers.renew()
    except BestArmError as refused:
        answer: Response = _refusal(refused)
    else:
        answer = RedirectResponse(attempt_cookies.own_page(attempt.next), 303, _NEVER_KEPT)
        session_cookies.keep(answer, made.token, tls=tls)
    attempt_cookies.forget(answer, tls=tls)
    return answer


def _provider_of(request: Request) -> IdentityProvider:
    provider: IdentityProvider | None = request.app.state.provider
    if provider is None:
        raise HTTPException(404)
    return provider


def _tls(request: Request) -> bool:
    return session_cookies.needs_tls(request.scope, request.app.state.public_url)


def _refusal(refused: BestArmError) -> Response:
    """A page that says why, because it is a person who waits for it."""
    status, code = STATUS[type(refused)]
    count_problem(code)
    if refused.reason is not None:
        count_auth_failure(refused.reason)
    return HTMLResponse(_PAGE.replace("{reason}", escape(str(refused))), status, HEADERS | _NEVER_KEPT)
