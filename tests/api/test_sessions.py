"""Signing in over HTTP: what a session may do, what it may not, and that its token is kept by its browser alone."""

from __future__ import annotations

import pytest

from testing.credentials import new_key, session_of
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.rows import Rows
from testing.server import ADMIN_KEY, Server

_SESSION = "/dashboard/session"


@pytest.fixture
def browser_client(keyed_server: Server) -> JsonClient:
    """A client without a key."""
    return JsonClient(keyed_server.url)


def test_a_session_s_life(keyed_wire: JsonClient, keyed_server: Server, browser_client: JsonClient) -> None:
    """Nobody is signed in, somebody is, and nobody again; the database never knew the token."""
    nobody = {"open": False, "provider": None, "ended": False, "signed_in": None}
    made = new_key(keyed_wire, label="ann", scopes=["manage", "read"], experiments=["anns-*"])
    with browser_client as client:
        assert client.send("GET", _SESSION).body == nobody
        kept = session_of(client, made["secret"])
        state = client.send("GET", _SESSION, **kept)
        assert state.headers["cache-control"] == "no-store"
        person = state.body["signed_in"]
        assert (person["id"], person["label"], person["scopes"]) == (made["id"], "ann", ["read", "manage"])
        assert person["experiments"] == ["anns-*"]
        assert client.send("GET", "/v1/experiments", **kept).status == 200
        assert client.send("GET", "/v1/keys", **kept).status == 403
        with Rows(keyed_server.database_url) as rows:
            stored = rows.query("SELECT digest, basis FROM sessions WHERE caller = :caller", caller=made["id"])
        assert kept["cookie"].partition("=")[2].encode() not in b"".join(bytes(part) for part in stored[0])
        left = client.send("DELETE", _SESSION, **kept)
        assert (left.status, "Max-Age=0" in left.headers["set-cookie"]) == (204, True)
        assert client.send("GET", "/v1/experiments", **kept).status == 401
        assert client.send("GET", _SESSION, **kept).body == nobody | {"ended": True}
        assert client.send("DELETE", _SESSION, **kept).status == 204


@pytest.mark.parametrize(
    ("key", "status", "words"),
    [
        ("ba_0123456789ab_" + "a" * 43, 401, "no key of this service"),
        ("whatever", 401, "no key of this service"),
        ("expired", 401, "expired"),
        ("revoked", 401, "revoked"),
        ("public", 403, "everybody can read it"),
        ("", 422, "at least 1 character"),
    ],
    ids=["unknown", "malformed", "expired", "revoked", "public", "empty"],
)
def test_who_is_not_let_in(keyed_wire: JsonClient, browser_client: JsonClient, key: str, status: int, words: str) -> None:
    """And why, in words; no cookie comes with a refusal."""
    public = {"kind": "public", "scopes": ["assign"], "experiments": ["one"], "origins": ["https://shop.example"]}
    if key in {"expired", "revoked", "public"}:
        made = new_key(keyed_wire, **(public if key == "public" else {}))
        if key == "expired":
            keyed_wire.send("POST", f"/v1/keys/{made['id']}/rotate", {"grace_seconds": 0})
        elif key == "revoked":
            keyed_wire.send("DELETE", f"/v1/keys/{made['id']}")
        key = made["secret"]
    with browser_client as client:
        refused = client.send("POST", _SESSION, {"key": key})
    assert (refused.status, words in refused.body["detail"]) == (status, True), refused.body
    assert "set-cookie" not in refused.headers
    assert not key or key not in str(refused.body)


def test_another_site_cannot_use_a_session(keyed_wire: JsonClient, browser_client: JsonClient, key: str) -> None:
    """Not to change anything, not to sign somebody in or out; a page of our own can."""
    keyed_wire.create(key, arms=arms(2))
    kept = session_of(keyed_wire, new_key(keyed_wire, scopes=["manage"])["secret"])
    changes = [("POST", f"/v1/experiments/{key}/pause"), ("POST", _SESSION), ("DELETE", _SESSION)]
    foreign = [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.example"}]
    with browser_client as client:
        for method, path in changes:
            for headers in foreign:
                refused = client.send(method, path, **kept, **headers)
                assert (refused.status, refused.body["code"]) == (403, "cross_site_request")
        assert client.send("POST", f"/v1/experiments/{key}/pause", **kept, **{"sec-fetch-site": "same-origin"}).status == 200


@pytest.mark.process
def test_a_neighbour_cannot_sign_somebody_in(sqlite_databases: NewDatabase) -> None:
    """A page of a sibling's name can set cookies for both: behind TLS, one by the plain name is nobody's session."""
    with (
        Server(sqlite_databases(), measured=True, key=ADMIN_KEY, BESTARM_PUBLIC_URL="https://bestarm.example.com") as behind_tls,
        JsonClient(behind_tls.url) as client,
    ):
        kept = session_of(client, ADMIN_KEY)["cookie"]
        assert kept.startswith("__Host-bestarm_session=")
        planted = kept.removeprefix("__Host-")
        assert client.send("GET", "/v1/experiments", cookie=kept).status == 200
        assert client.send("GET", "/v1/experiments", cookie=planted).status == 401
        assert client.send("GET", _SESSION, cookie=planted).body["signed_in"] is None


@pytest.mark.process
def test_signing_out_at_once_in_another_worker(sqlite_databases: NewDatabase) -> None:
    """Ends the session there, too, though that worker has not heard of it yet."""
    with Server(sqlite_databases(), workers=2, key=ADMIN_KEY) as two_workers:
        kept = []
        for _ in range(8):  # a new connection each time: any worker may take it
            with JsonClient(two_workers.url) as here, JsonClient(two_workers.url) as there:
                kept.append(session_of(here, ADMIN_KEY))
                assert there.send("DELETE", _SESSION, **kept[-1]).status == 204
        with Rows(two_workers.database_url) as rows:
            assert rows.query("SELECT count(*), count(ended_at) FROM sessions") == [(8, 8)]


def test_the_history_names_the_key_behind_a_session(keyed_wire: JsonClient, browser_client: JsonClient, key: str) -> None:
    """As if the key itself had been sent."""
    made = new_key(keyed_wire, label="ann", scopes=["manage"])
    with browser_client as client:
        kept = session_of(client, made["secret"])
        created = {"key": key, "arms": arms(2)}
        assert client.send("POST", "/v1/experiments", created, **kept).status == 201
    events = keyed_wire.send("GET", f"/v1/experiments/{key}/events").body["events"]
    assert events[0]["actor"] == {"id": made["id"], "label": "ann"}


def test_a_stream_ends_with_its_session(keyed_server: Server, keyed_wire: JsonClient, key: str) -> None:
    """Whoever signs out is shown nothing more."""
    keyed_wire.create(key, arms=arms(2))
    kept = session_of(keyed_wire, new_key(keyed_wire)["secret"])
    with JsonClient(keyed_server.url) as client, keyed_server.client() as watching:
        del watching.headers["authorization"]
        with watching.stream("GET", f"/v1/experiments/{key}/stream", headers=kept) as stream:
            lines = stream.iter_lines()
            assert any(line.startswith("id: ") for line in lines)
            assert client.send("DELETE", _SESSION, **kept).status == 204
            keyed_wire.ask(key)
            assert not any(line.startswith("id: ") for line in lines)


def test_an_open_service_has_nobody_to_sign_in(wire: JsonClient) -> None:
    """It says that it is open; a cookie of another service changes nothing."""
    stale = {"cookie": "bestarm_session=" + "a" * 43}
    assert wire.send("GET", _SESSION, **stale).body == {"open": True, "provider": None, "ended": False, "signed_in": None}
    assert wire.send("GET", "/v1/experiments", **stale).status == 200
    assert wire.send("POST", _SESSION, {"key": "anything"}).status == 409
