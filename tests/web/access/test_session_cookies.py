"""The cookie of a session: for whom it is, and how it is read."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import Response

from service.web.access.session_cookies import forget, keep, needs_tls, token_in


def _scope(host: str, scheme: str = "http") -> dict[str, Any]:
    return {"type": "http", "scheme": scheme, "headers": [(b"host", host.encode())]}


@pytest.mark.parametrize(
    ("host", "public_url", "tls"),
    [
        ("127.0.0.1:8000", "", False),
        ("localhost", "", False),
        ("LOCALHOST.", "", False),
        ("[::1]:8000", "", False),
        ("bestarm.example.com", "", True),
        ("10.0.0.7:8000", "", True),
        ("localhost.example.com", "", True),
        ("127.0.0.1:8000", "https://bestarm.example.com", True),
        ("bestarm.internal", "http://bestarm.internal", False),
    ],
)
def test_it_needs_tls_everywhere_but_on_this_machine(host: str, public_url: str, *, tls: bool) -> None:
    """Unless the public address says otherwise; behind TLS of our own it always does."""
    assert needs_tls(_scope(host), public_url) is tls
    assert needs_tls(_scope(host, "https"), "") is True


def test_what_a_browser_is_told_of_it() -> None:
    """No script sees it, no other site sends it; with TLS its name keeps neighbours from setting it."""
    secure, plain, gone = Response(), Response(), Response()
    keep(secure, "token", tls=True)
    keep(plain, "token", tls=False)
    forget(gone, tls=False)
    every = "HttpOnly; Max-Age=43200; Path=/; SameSite=strict"
    assert secure.headers["set-cookie"] == f"__Host-bestarm_session=token; {every}; Secure"
    assert plain.headers["set-cookie"] == f"bestarm_session=token; {every}"
    assert "Max-Age=0" in gone.headers["set-cookie"]


@pytest.mark.parametrize(
    ("cookies", "plain", "guarded"),
    [
        ([], None, None),
        ([b"theme=dark"], None, None),
        ([b"bestarm_session=a"], b"a", None),
        ([b"theme=dark; bestarm_session=a; other=b"], b"a", None),
        ([b"bestarm_session=a; __Host-bestarm_session=b"], b"a", b"b"),
        ([b"bestarm_session=a; bestarm_session=b"], b"a", None),
        ([b"theme=dark", b"bestarm_session=a"], b"a", None),
        ([b"bestarm_session"], b"", None),
        ([b"not_bestarm_session=a"], None, None),
    ],
)
def test_how_it_is_read(cookies: list[bytes], plain: bytes | None, guarded: bytes | None) -> None:
    """By its whole name; with TLS by the guarded one alone, because a neighbour can set the other."""
    headers = [(b"host", b"localhost"), *((b"cookie", value) for value in cookies)]
    assert (token_in(headers, tls=False), token_in(headers, tls=True)) == (plain, guarded)
