"""Signing in with an account of an identity provider: a real one, in a browser and by hand, and all that may be wrong with it."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import ECKey
from playwright.sync_api import Browser, expect

from testing.databases import NewDatabase
from testing.identity_provider import PERSON, Behaviour, ProviderServer
from testing.server import Server, free_port

_BEGIN = "/dashboard/session/oidc"


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderServer]:
    """The provider."""
    with ProviderServer() as running:
        yield running


@pytest.fixture(autouse=True)
def behaviour(provider: ProviderServer) -> Behaviour:
    """What it does, right until the test spoils it."""
    provider.behaviour = Behaviour()
    return provider.behaviour


@pytest.fixture(scope="module")
def served(sqlite_databases: NewDatabase, provider: ProviderServer) -> Iterator[Server]:
    """A service without any key that lets accounts of the provider in."""
    port = free_port()
    with Server(sqlite_databases(), port=port, measured=True, **provider.settings(f"http://127.0.0.1:{port}")) as running:
        yield running


def _walk(client: httpx.Client, *, next: str = "/") -> httpx.Response:  # noqa: A002 - the parameter's name
    """As a browser does: to the provider, and back; the answer to the way back."""
    away = client.get(_BEGIN, params={"next": next})
    assert away.status_code == 303, away.text
    back = httpx.get(away.headers["location"])
    assert back.status_code == 302
    return client.get(back.headers["location"])


def test_an_account_signs_in(served: Server, behaviour: Behaviour) -> None:
    """It may do what its groups may, and is named in the history; then it signs out."""
    behaviour.person = PERSON | {"groups": ["admins", "others"]}
    with served.client() as client:
        assert client.get("/v1/experiments").status_code == 401
        back = _walk(client, next="/keys?x=1")
        assert (back.status_code, back.headers["location"]) == (303, "/keys?x=1")
        kept = back.headers.get_list("set-cookie")
        assert sorted(re.sub("=.*", "", one) for one in kept) == ["bestarm_session", "bestarm_sign_in"]
        person = client.get("/dashboard/session").json()["signed_in"]
        assert (person["id"], person["label"], "admin" in person["scopes"]) == ("oidc:ann-1", "ann@shop.example", True)
        made = client.post("/v1/keys", json={"label": "by ann", "scopes": ["read"]})
        assert (made.status_code, made.json()["created_by"]) == (201, "oidc:ann-1")
        arms = [{"key": "a"}, {"key": "b"}]
        assert client.post("/v1/experiments", json={"key": "anns", "arms": arms}).status_code == 201
        event = client.get("/v1/experiments/anns/events").json()["events"][0]
        assert event["actor"] == {"id": "oidc:ann-1", "label": "ann@shop.example"}
        assert client.delete("/dashboard/session").status_code == 204
        assert client.get("/v1/experiments").status_code == 401


_NOT_GOOD = "not good for this sign-in"
_SPOILED: dict[str, tuple[dict[str, Any], int, str]] = {
    "wrong state": ({"answer": {"state": "of-another"}}, 401, "not begun in this browser"),
    "no state": ({"answer": {"state": ""}}, 401, "not begun in this browser"),
    "wrong code": ({"answer": {"code": "made-up"}}, 401, _NOT_GOOD),
    "refused there": ({"answer": {"error": "access_denied", "code": ""}}, 401, "did not let you in: access_denied"),
    "refused with markup": ({"answer": {"error": "<b>", "code": ""}}, 401, "no reason given"),
    "wrong nonce": ({"claims": {"nonce": "of-another"}}, 401, _NOT_GOOD),
    "no nonce": ({"claims": {"nonce": None}}, 401, _NOT_GOOD),
    "expired": ({"claims": {"exp": int(time.time()) - 120}}, 401, _NOT_GOOD),
    "no expiry": ({"claims": {"exp": None}}, 401, _NOT_GOOD),
    "wrong audience": ({"claims": {"aud": "another"}}, 401, _NOT_GOOD),
    "for others as well": ({"claims": {"aud": ["bestarm", "another"], "azp": "another"}}, 401, _NOT_GOOD),
    "wrong issuer": ({"claims": {"iss": "https://evil.example"}}, 401, _NOT_GOOD),
    "wrong key": ({"foreign_key": True}, 401, _NOT_GOOD),
    "no mapped group": ({"person": PERSON | {"groups": ["others"]}}, 403, "none of your groups"),
    "no groups": ({"person": {"sub": "x", "name": "<i>Bob</i>"}}, 403, "&lt;i&gt;Bob&lt;/i&gt;"),
}


@pytest.mark.parametrize("name", _SPOILED)
def test_what_is_not_believed(served: Server, provider: ProviderServer, name: str) -> None:
    """A page says why in words, no session comes of it, and the attempt is over."""
    spoiled, status, words = _SPOILED[name]
    provider.behaviour = Behaviour(**spoiled)
    with served.client() as client:
        refused = _walk(client)
        assert (refused.status_code, words in refused.text) == (status, True), refused.text
        assert "default-src 'none'" in refused.headers["content-security-policy"]
        assert "bestarm_session" not in client.cookies
        again = client.get(f"{_BEGIN}/callback", params={"state": "x", "code": "x"})
        assert "not begun in this browser" in again.text
        assert client.get("/dashboard/session").json()["signed_in"] is None


def test_refusals_are_counted_by_reason(served: Server, provider: ProviderServer) -> None:
    """As those of keys are."""
    with served.client() as client:
        provider.behaviour = Behaviour(claims={"aud": "another"})
        assert _walk(client).status_code == 401
        provider.behaviour = Behaviour()
        assert _walk(client).status_code == 303
        assert 'bestarm_auth_failures_total{reason="id_token"}' in client.get("/metrics").text


def test_groups_that_must_be_asked_for(served: Server, behaviour: Behaviour) -> None:
    """Where the id token does not name them, the account's own page does."""
    behaviour.in_id_token = False
    with served.client() as client:
        assert _walk(client).status_code == 303
        assert client.get("/dashboard/session").json()["signed_in"]["scopes"] == ["read"]


def test_a_new_key_of_the_provider(served: Server, provider: ProviderServer) -> None:
    """Is asked for when a token was signed by it; what was published is not read again for every sign-in."""
    with served.client() as client:
        assert _walk(client).status_code == 303
        before = list(provider.asked)
        assert _walk(client).status_code == 303
        assert provider.asked == [*before, "/authorize", "/token"]
        provider.key = ECKey.generate_key("P-256", {"kid": "another"})
        assert _walk(client).status_code == 303
        assert provider.asked[-2:] == ["/token", "/keys"]


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:x", "", "/a b", "/\t/x"]
)
def test_no_way_leads_elsewhere(served: Server, wanted: str) -> None:
    """Whatever an address asks for, one comes back to this service."""
    with served.client() as client:
        assert _walk(client, next=wanted).headers["location"] == "/"


def test_what_the_provider_is_asked(served: Server) -> None:
    """A code, with PKCE, state and nonce, that comes back to the public address."""
    with served.client() as client:
        asked = parse_qs(urlsplit(client.get(_BEGIN).headers["location"]).query)
        other = parse_qs(urlsplit(client.get(_BEGIN).headers["location"]).query)
    assert asked["redirect_uri"] == [f"{served.url}{_BEGIN}/callback"]
    assert (asked["response_type"], asked["code_challenge_method"], asked["scope"]) == (
        ["code"],
        ["S256"],
        ["openid email profile"],
    )
    assert all(asked[name] != other[name] for name in ("state", "nonce", "code_challenge"))


@pytest.mark.process
def test_a_provider_that_is_away(sqlite_databases: NewDatabase, provider: ProviderServer) -> None:
    """Is said in words, and the service starts without it."""
    settings = provider.settings("http://127.0.0.1") | {"BESTARM_OIDC_ISSUER": f"http://localhost:{free_port()}"}
    with Server(sqlite_databases(), **settings) as running, running.client() as client:
        refused = client.get(_BEGIN)
        assert (refused.status_code, "does not answer" in refused.text) == (502, True)


def test_without_a_provider(sqlite_server: Server) -> None:
    """There is no such way."""
    with sqlite_server.client() as client:
        assert [client.get(path).status_code for path in (_BEGIN, f"{_BEGIN}/callback")] == [404, 404]


def test_in_a_browser(browser: Browser, served: Server, provider: ProviderServer) -> None:
    """From the page that was wanted, by the provider of another site, and back to it; then somebody whom no group lets in."""
    with browser.new_context(base_url=served.url) as window:
        page = window.new_page()
        page.goto("/?status=running")
        page.get_by_role("link", name="Sign in with localhost").click()
        expect(page.locator(".person")).to_contain_text("ann@shop.example read")
        assert page.url == f"{served.url}/?status=running"
        page.reload()
        page.get_by_role("button", name="Sign out").click()
        provider.behaviour = Behaviour(person=PERSON | {"groups": []})
        page.get_by_role("link", name="Sign in with localhost").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Not signed in")
        expect(page.locator("main")).to_contain_text("ann@shop.example, but none of your groups may use this service")


@pytest.mark.parametrize(
    "written",
    [b'["\\ud800","a","b","c"]', b"[" * 20_000, b'["a","b"]', b"\xff", b'{"a": 1}'],
    ids=["surrogate", "deep", "short", "bytes", "else"],
)
def test_a_made_up_attempt_is_none(served: Server, written: bytes) -> None:
    """Whatever a browser sends for the attempt that it should have kept, coming back without one is refused in the same words."""
    with served.client() as client:
        cookie = {"cookie": f"bestarm_sign_in={base64.urlsafe_b64encode(written).decode()}"}
        wanted = {"state": "a", "code": "b"}
        with_it, without = (client.get(f"{_BEGIN}/callback", params=wanted, headers=headers) for headers in (cookie, {}))
        assert (with_it.status_code, with_it.text) == (without.status_code, without.text)
        assert with_it.status_code == 401
