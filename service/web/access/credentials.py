"""The key or the session that comes with a request, and who is behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from service.domain.api_keys import PREFIXES, digest_of
from service.errors import Forbidden, Unauthorized
from service.web.access.session_cookies import token_of
from service.web.access.stream_tokens import bearer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping

    from service.application.live.known_callers import KnownCallers
    from service.domain.callers import Caller
    from service.web.access.rate_limits import RateLimits

# Where a request's caller is left for its route.
CALLER = "bestarm.caller"
# There once its caller's bucket has given a token for it.
_ADMITTED = "bestarm.admitted"
_SCHEME = b"bearer "
_OFREP = "/ofrep/"
FLAG_STREAM = "/ofrep/v1/stream"
_PUBLIC = PREFIXES["public"].encode()


def secret_in(value: bytes) -> bytes | None:
    """The secret of an Authorization header; None if it is of another kind."""
    return value[len(_SCHEME) :].strip() if value[: len(_SCHEME)].lower() == _SCHEME else None


def is_public(secret: bytes | None) -> bool:
    """Does it call itself a key that pages may hold?"""
    return secret is not None and secret.startswith(_PUBLIC)


def secret_of(scope: Mapping[str, Any]) -> bytes | None:
    """The one secret that a request sends; None if it sends none. OpenFeature's providers may send it under another name."""
    headers = scope["headers"]
    given = [value for name, value in headers if name == b"authorization"]
    if not given:
        named = [value for name, value in headers if name == b"x-api-key"] if scope["path"].startswith(_OFREP) else []
        return named[0].strip() if len(named) == 1 else None
    secret = secret_in(given[0])
    if secret is None or len(given) > 1:
        raise Unauthorized("malformed")
    return secret


def identify_at_once(scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes], callers: KnownCallers) -> Caller | None:
    """Who sends this request of the API, left in its scope, if that is known already; else `identify` finds out, or refuses.

    These headers are all of the request's, and none of them comes twice.
    """
    authorization = headers.get(b"authorization")
    if authorization is None:
        caller = None if b"cookie" in headers else callers.known(None)
    else:
        secret = secret_in(authorization)
        caller = None if secret is None or is_public(secret) else callers.known(digest_of(secret))
    if caller is not None and caller.origins is None:
        scope[CALLER] = caller
        return caller
    return None


async def identify(scope: MutableMapping[str, Any], callers: KnownCallers) -> Caller:
    """Who sends this request; left in its scope, and refused if it is nobody who may send any. A cookie is no second key."""
    secret = secret_of(scope)
    ticket = _stream_token(scope) if secret is None else None
    token = token_of(scope) if secret is None and ticket is None else None
    if ticket is not None:
        caller = await bearer_of(callers, ticket)
    else:
        caller = await (callers.identified(secret) if token is None else callers.signed_in(token))
    if caller.origins is not None:
        if _origin(scope["headers"]) not in caller.origins:
            raise Forbidden("This key is not for pages of that origin.", "origin")
    elif is_public(secret):
        raise Unauthorized("unknown")  # where there are no keys, a page of another site is still not anybody
    scope[CALLER] = caller
    return caller


def _stream_token(scope: Mapping[str, Any]) -> str | None:
    """On the one route that takes it."""
    if scope["path"] != FLAG_STREAM or not scope["query_string"]:
        return None
    given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    return given[0] if len(given) == 1 else None


def admit(scope: MutableMapping[str, Any], caller: Caller, rates: RateLimits) -> None:
    """Count a request once against what its caller may send, whoever of us asks."""
    if _ADMITTED not in scope:
        rates.require(caller)
        scope[_ADMITTED] = True


def _origin(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    given = [value for name, value in headers if name == b"origin"]
    return given[0].decode("latin-1").lower() if len(given) == 1 else None
