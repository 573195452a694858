"""Keys of every kind for one service: good ones of each scope, and those that must be refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from service.domain.callers import PUBLIC_SCOPES, SCOPES, Scope
from testing.json_client import JsonClient

ORIGIN = "https://shop.example"


@dataclass(frozen=True)
class Credential:
    """What a request is sent with, and what it may do."""

    name: str
    secret: str | None
    scopes: frozenset[Scope] = frozenset()
    """None at all: whoever sends it is nobody."""
    headers: dict[str, str] = field(default_factory=dict)
    elsewhere: bool = False
    """It is for other experiments than the one that is asked for."""
    limited: bool = False
    """It is for some experiments only."""
    public: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def sent(self) -> dict[str, str]:
        """The headers to send."""
        return self.headers | ({} if self.secret is None else {"authorization": f"Bearer {self.secret}"})


def new_key(admin: JsonClient, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """A key, its secret included."""
    made = admin.send("POST", "/v1/keys", {"label": "a test's", "scopes": ["read"]} | wanted)
    assert made.status == 201, made
    body: dict[str, Any] = made.body
    return body


def session_of(client: JsonClient, secret: str) -> dict[str, str]:
    """The headers of a browser that signed in with this key."""
    answer = client.send("POST", "/dashboard/session", {"key": secret})
    assert answer.status == 200, answer
    return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


def _sessions(admin: JsonClient, own: str) -> list[Credential]:
    """The sessions that every route is tried with."""
    reading, revoked = new_key(admin, scopes=["read"])["secret"], new_key(admin, scopes=["admin"])
    good = session_of(admin, reading)
    left, orphaned = session_of(admin, reading), session_of(admin, revoked["secret"])
    assert admin.send("DELETE", "/dashboard/session", **left).status == 204
    assert admin.send("DELETE", f"/v1/keys/{revoked['id']}").status == 204
    unknown = {"cookie": "bestarm_session=" + "a" * 43}
    return [
        Credential("session of scope read", None, frozenset({"read"}), headers=good),
        Credential("session of its own experiment's", None, frozenset(SCOPES[:-1]), headers=session_of(admin, own), limited=True),
        Credential("session that was left", None, headers=left),
        Credential("session of a revoked key", None, headers=orphaned),
        Credential("session that never was", None, headers=unknown),
        Credential("session beside a wrong key", None, headers=good | {"authorization": "Bearer ba_wrong"}),
    ]


def of_each_kind(admin: JsonClient, experiment: str) -> list[Credential]:
    """The credentials that every route is tried with; those that are limited to an experiment, to this one."""
    every = list(SCOPES[:-1])
    revoked, expired = new_key(admin, scopes=["admin"]), new_key(admin, scopes=["admin"])
    assert admin.send("DELETE", f"/v1/keys/{revoked['id']}").status == 204
    assert admin.send("POST", f"/v1/keys/{expired['id']}/rotate", {"grace_seconds": 0}).status == 201
    good = new_key(admin, scopes=["admin"])["secret"]
    public = new_key(admin, kind="public", scopes=sorted(PUBLIC_SCOPES), experiments=[experiment], origins=[ORIGIN])["secret"]
    elsewhere = new_key(admin, scopes=every, experiments=["elsewhere-*", f"{experiment}-not"])["secret"]
    own = new_key(admin, scopes=every, experiments=[experiment])["secret"]
    return [
        Credential("no key", None),
        Credential("malformed", None, headers={"authorization": good}),
        Credential("of another kind", None, headers={"authorization": f"Basic {good}"}),
        Credential("nothing", ""),
        Credential("unknown", good[:-1] + ("a" if good[-1] != "a" else "b")),
        Credential("a part of one", good[:40]),
        Credential("revoked", revoked["secret"]),
        Credential("expired", expired["secret"]),
        *(Credential(f"scope {scope}", new_key(admin, scopes=[scope])["secret"], _granted(scope)) for scope in SCOPES),
        Credential("its own experiment's", own, frozenset(every), limited=True),
        Credential("another experiment's", elsewhere, frozenset(every), elsewhere=True, limited=True),
        Credential("public, from its origin", public, PUBLIC_SCOPES, headers={"origin": ORIGIN}, public=True),
        Credential("public, from another origin", public, headers={"origin": "https://evil.example"}, public=True),
        Credential("public, from a longer origin", public, headers={"origin": f"{ORIGIN}.evil.example"}, public=True),
        Credential("public, from nowhere", public, public=True),
        *_sessions(admin, own),
    ]


def _granted(scope: Scope) -> frozenset[Scope]:
    return frozenset(SCOPES) if scope == "admin" else frozenset({scope})
