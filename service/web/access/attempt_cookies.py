"""The cookie that a browser keeps while somebody is at the identity provider: who comes back must be who went there."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import astuple
from typing import TYPE_CHECKING, Final

from service.web.access.session_cookies import GUARDED_PREFIX, cookies_in
from service.web.access.sign_in_attempt import SignInAttempt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.responses import Response

_NAME: Final = "bestarm_sign_in"
_SECONDS: Final = 600
_PARTS = 4
# A path of this service: a second slash, or a backslash, which browsers read as one, would name another host.
_OWN_PAGE = re.compile(r"/(?![/\\])[!-\[\]-~]{0,2000}")


def own_page(wanted: str) -> str:
    """The page that somebody wanted, if it is one of ours; else the first one."""
    return wanted if _OWN_PAGE.fullmatch(wanted) else "/"


def _name(*, tls: bool) -> str:
    return GUARDED_PREFIX + _NAME if tls else _NAME


def keep(response: Response, attempt: SignInAttempt, *, tls: bool) -> None:
    """Let the browser keep it. Lax, because it is the provider's page that sends the browser back."""
    written = base64.urlsafe_b64encode(json.dumps(astuple(attempt)).encode()).decode()
    response.set_cookie(_name(tls=tls), written, max_age=_SECONDS, path="/", secure=tls, httponly=True, samesite="lax")


def forget(response: Response, *, tls: bool) -> None:
    """It is good for once."""
    response.delete_cookie(_name(tls=tls), path="/", secure=tls, httponly=True, samesite="lax")


def _may_be_part(part: object) -> bool:
    """Random texts and a path of ours are plain; what is not, somebody else has written."""
    return isinstance(part, str) and part != "" and part.isascii()


def attempt_in(headers: Iterable[tuple[bytes, bytes]], *, tls: bool) -> SignInAttempt | None:
    """What the browser kept; None if there is nothing that can be read."""
    written = cookies_in(headers).get(_name(tls=tls).encode(), b"")
    try:
        parts = json.loads(base64.urlsafe_b64decode(written))
    except (ValueError, RecursionError):
        return None
    if not (isinstance(parts, list) and len(parts) == _PARTS and all(map(_may_be_part, parts))):
        return None
    return SignInAttempt(*parts)
