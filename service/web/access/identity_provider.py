"""Accounts of an identity provider (OpenID Connect): the authorization code flow with PKCE, state and nonce.

Nothing of it is on the way of other requests: what the provider publishes is read when somebody signs in, kept for an hour, and
waited for no longer than `_TIMEOUT`. An id token is believed if a key of the provider signed it, for this service, lately, and in
answer to the very request that this browser began.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from service.domain.browser_sessions import LONGEST_LABEL, account_id
from service.domain.callers import Caller, Scope
from service.errors import Forbidden, IdentityProviderUnavailable, Unauthorized
from service.web.access.provider_settings import ProviderSettings, is_safe_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.web.access.sign_in_attempt import SignInAttempt

_TIMEOUT: Final = httpx.Timeout(5.0)
_KEPT_SECONDS = 3600.0
# Clocks differ a little.
_LEEWAY_SECONDS = 60
# A key that others know cannot sign, and neither can none.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_REFUSED = "The identity provider's answer is not good for this sign-in. Begin again."


class IdentityProvider:
    """One per worker."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._published: dict[str, Any] = {}
        self._published_until = 0.0
        self._keys: KeySet | None = None

    async def address_to_sign_in(self, attempt: SignInAttempt) -> str:
        """Where to send the browser."""
        published = await self._configuration()
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.settings.redirect_uri,
            "scope": self.settings.requested,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        address: str = published["authorization_endpoint"]
        return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"

    async def account(self, code: str, attempt: SignInAttempt) -> Caller:
        """Who signed in there, and what their groups let them do here."""
        tokens = await self._tokens(code, attempt)
        claims = await self._claims(str(tokens.get("id_token", "")), attempt.nonce)
        if self.settings.groups_claim not in claims:
            claims = await self._more_claims(str(tokens.get("access_token", "")), str(claims["sub"])) | claims
        scopes = scopes_of(claims, self.settings)
        if not scopes:
            raise Forbidden(f"You are known as {label_of(claims)}, but none of your groups may use this service.")
        return Caller(scopes, account_id(str(claims["sub"])), label_of(claims))

    async def _configuration(self) -> dict[str, Any]:
        if time.monotonic() > self._published_until:
            found = await _fetched("GET", self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
            if str(found.get("issuer", "")).rstrip("/") != self.settings.issuer.rstrip("/"):
                raise IdentityProviderUnavailable("The identity provider calls itself by another name than BESTARM_OIDC_ISSUER.")
            if not all(is_safe_address(str(found.get(name, ""))) for name in _ENDPOINTS):
                raise IdentityProviderUnavailable("The identity provider does not say where to go, or not by TLS.")
            self._published, self._published_until = found, time.monotonic() + _KEPT_SECONDS
            self._keys = None
        return self._published

    async def _tokens(self, code: str, attempt: SignInAttempt) -> dict[str, Any]:
        published, own = await self._configuration(), self.settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": own.redirect_uri,
            "client_id": own.client_id,
            "code_verifier": attempt.verifier,
        }
        methods = published.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        auth = None
        if own.client_secret is not None and "client_secret_basic" in methods:
            auth = httpx.BasicAuth(own.client_id, own.client_secret)
        elif own.client_secret is not None:
            form["client_secret"] = own.client_secret
        return await _fetched("POST", published["token_endpoint"], auth=auth, data=form)

    async def _claims(self, id_token: str, nonce: str) -> dict[str, Any]:
        """What the id token says, if it is to be believed."""
        try:
            try:
                token = jwt.decode(id_token, await self._key_set(), algorithms=_ALGORITHMS)
            except (JoseError, ValueError):  # perhaps by a key that is new
                token = jwt.decode(id_token, await self._key_set(again=True), algorithms=_ALGORITHMS)
            _registry(str((await self._configuration())["issuer"]), self.settings.client_id, nonce).validate(token.claims)
        except (JoseError, ValueError) as unbelievable:
            raise Unauthorized("id_token", _REFUSED) from unbelievable
        claims: dict[str, Any] = token.claims
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self.settings.client_id:
            raise Unauthorized("id_token", _REFUSED)
        return claims

    async def _key_set(self, *, again: bool = False) -> KeySet:
        if self._keys is None or again:
            found = await _fetched("GET", (await self._configuration())["jwks_uri"])
            self._keys = KeySet.import_key_set({"keys": found.get("keys", [])})
        return self._keys

    async def _more_claims(self, access_token: str, subject: str) -> dict[str, Any]:
        """What the provider says of the account elsewhere than in the id token."""
        address = (await self._configuration()).get("userinfo_endpoint")
        if not access_token or not address or not is_safe_address(address):
            return {}
        found = await _fetched("GET", address, headers={"Authorization": f"Bearer {access_token}"})
        return found if found.get("sub") == subject else {}


def _registry(issuer: str, client_id: str, nonce: str) -> jwt.JWTClaimsRegistry:
    return jwt.JWTClaimsRegistry(
        leeway=_LEEWAY_SECONDS,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": client_id},
        exp={"essential": True},
        sub={"essential": True},
        nonce={"essential": True, "value": nonce},
    )


def scopes_of(claims: Mapping[str, Any], settings: ProviderSettings) -> frozenset[Scope]:
    """What the groups of an account let it do."""
    given = claims.get(settings.groups_claim, [])
    groups = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return frozenset[Scope]().union(*(settings.groups.get(group, frozenset()) for group in groups if isinstance(group, str)))


def label_of(claims: Mapping[str, Any]) -> str:
    """What people call the account: its address if the provider does not doubt it, else its name."""
    names = [] if claims.get("email_verified") is False else [claims.get("email")]
    names += [claims.get(name) for name in ("name", "preferred_username", "sub")]
    found = next(name for name in names if isinstance(name, str) and name.strip())
    return "".join(letter for letter in found if letter.isprintable())[:LONGEST_LABEL].strip() or "somebody"


async def _fetched(method: str, address: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - httpx's own
    """The JSON object that the provider answers."""
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False) as client:
            answer = await client.request(method, address, **given)
        found = answer.json() if answer.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as trouble:
        raise IdentityProviderUnavailable("The identity provider does not answer; try again in a moment.") from trouble
    if answer.is_client_error and method == "POST":
        raise Unauthorized("code", _REFUSED)
    if not isinstance(found, dict):
        raise IdentityProviderUnavailable("The identity provider gives no good answer; try again in a moment.")
    return found
