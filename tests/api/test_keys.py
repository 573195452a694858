"""Keys of the API: made, shown once, replaced, revoked, and named in the audit log."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.domain.limits import MOST_PUBLIC_ITEMS
from testing.credentials import Credential, new_key
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.rows import Rows
from testing.server import ADMIN_KEY, Server

_NOT_KNOWN = "key_" + "0" * 20


def _status(client: JsonClient, path: str, secret: str) -> int:
    return client.send("GET", path, **Credential("", secret).sent).status


def test_a_key_s_life(keyed_wire: JsonClient, keyed_server: Server) -> None:
    """Created with its secret, listed without it, revoked once and for all; the instance's log tells."""
    made = new_key(keyed_wire, label="ops", scopes=["read", "assign"])
    assert made["secret"].startswith(made["prefix"] + "_")
    assert (made["scopes"], made["created_by"], made["status"]) == (["assign", "read"], "admin", "active")
    with JsonClient(keyed_server.url) as client:
        assert _status(client, "/v1/experiments", made["secret"]) == 200
        shown = keyed_wire.send("GET", f"/v1/keys/{made['id']}").body
        assert shown == {name: value for name, value in made.items() if name != "secret"}
        assert keyed_wire.send("GET", "/v1/keys?page_size=1").body["keys"] == [shown]
        assert [keyed_wire.send("DELETE", f"/v1/keys/{made['id']}").status for _ in range(2)] == [204, 204]
        assert _status(client, "/v1/experiments", made["secret"]) == 401
    revoked = keyed_wire.send("GET", f"/v1/keys/{made['id']}").body
    assert revoked["status"] == "revoked"
    assert revoked["revoked_at"] is not None
    entries = keyed_wire.send("GET", "/v1/log").body["entries"][:2]
    assert [(entry["kind"], entry["details"]["label"], entry["actor"]["id"]) for entry in entries] == [
        ("key_revoked", "ops", "admin"),
        ("key_created", "ops", "admin"),
    ]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("name", [_NOT_KNOWN, "nothing", "key_%00"])
def test_an_unknown_key(keyed_wire: JsonClient, method: str, name: str) -> None:
    """404, in its own words."""
    reply = keyed_wire.send(method, f"/v1/keys/{name}")
    assert (reply.status, reply.body["code"]) == (404, "key_not_found")


def test_a_repeated_creation_keeps_the_secret_to_itself(keyed_wire: JsonClient, keyed_server: Server) -> None:
    """One key, and the second answer is the first without its secret: it is stored nowhere."""
    body = {"label": "twice", "scopes": ["read"]}
    first, again = (keyed_wire.send("POST", "/v1/keys", body, idempotency_key="twice") for _ in range(2))
    assert (first.status, again.status, again.headers["idempotency-replayed"]) == (201, 201, "true")
    assert again.body == first.body | {"secret": None}
    other = keyed_wire.send("POST", "/v1/keys", body | {"label": "other"}, idempotency_key="twice")
    assert (other.status, other.body["code"]) == (422, "idempotency_key_reused")
    with Rows(keyed_server.database_url) as rows:
        assert rows.query("SELECT count(*) FROM api_keys WHERE label = 'twice'") == [(1,)]


def test_a_successor_takes_over(keyed_wire: JsonClient, keyed_server: Server) -> None:
    """It may do the same; the old key is good for the grace period, and no longer."""
    old = new_key(keyed_wire, scopes=["read"], experiments=["some-*"])
    new = keyed_wire.send("POST", f"/v1/keys/{old['id']}/rotate", {"grace_seconds": 1}, idempotency_key=old["id"]).body
    assert (new["scopes"], new["experiments"], new["label"]) == (old["scopes"], old["experiments"], old["label"])
    again = keyed_wire.send("POST", f"/v1/keys/{old['id']}/rotate", {"grace_seconds": 1}, idempotency_key=old["id"])
    assert again.body == new | {"secret": None}
    twice = keyed_wire.send("POST", f"/v1/keys/{old['id']}/rotate", {"grace_seconds": 1})
    assert (twice.status, twice.body["code"]) == (409, "conflict")
    with JsonClient(keyed_server.url) as client:
        deadline = time.monotonic() + 10
        assert _status(client, "/v1/experiments", new["secret"]) == 200
        while _status(client, "/v1/experiments", old["secret"]) == 200:
            assert time.monotonic() < deadline
        assert _status(client, "/v1/experiments", old["secret"]) == 401
        assert _status(client, "/v1/experiments", new["secret"]) == 200
    assert keyed_wire.send("GET", f"/v1/keys/{old['id']}").body["successor"] == new["id"]


def test_rotating_and_revoking_at_once(keyed_wire: JsonClient, keyed_server: Server) -> None:
    """Whichever comes first, both are answered: neither waits for the other with what it needs."""
    for _ in range(20):
        made, statuses = new_key(keyed_wire), dict[str, int]()

        def send(method: str, path: str, into: dict[str, int], body: object = None) -> None:
            with JsonClient(keyed_server.url, key=ADMIN_KEY) as client:
                into[method] = client.send(method, path, body).status

        path = f"/v1/keys/{made['id']}"
        threads = [
            threading.Thread(target=send, args=("DELETE", path, statuses)),
            threading.Thread(target=send, args=("POST", f"{path}/rotate", statuses, {})),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses["DELETE"] == 204
        assert statuses["POST"] in (201, 409)


_YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).isoformat()
_PUBLIC = {"kind": "public", "scopes": ["assign"], "experiments": ["one"], "origins": ["https://shop.example"]}


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["everything"]}, "/scopes/0"),
        ({"label": ""}, "/label"),
        ({"label": "x" * 101}, "/label"),
        ({"experiments": []}, "/experiments"),
        ({"experiments": ["No"]}, "/experiments/0"),
        ({"scopes": ["admin"], "experiments": ["one"]}, "/experiments"),
        ({"expires_at": _YESTERDAY}, "/expires_at"),
        ({"expires_at": "soon"}, "/expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-00:01"}, "/expires_at"),
        ({"expires_at": 10**15}, "/expires_at"),
        ({"origins": ["https://shop.example"]}, "/origins"),
        (_PUBLIC | {"scopes": ["read"]}, "/scopes"),
        (_PUBLIC | {"experiments": None}, "/experiments"),
        (_PUBLIC | {"experiments": ["one-*"]}, "/experiments"),
        (_PUBLIC | {"origins": None}, "/origins"),
        (_PUBLIC | {"origins": ["https://shop.example/path"]}, "/origins/0"),
        (_PUBLIC | {"origins": ["*"]}, "/origins/0"),
        ({"more": 1}, "/more"),
    ],
)
def test_what_would_be_a_hole_is_refused(keyed_wire: JsonClient, wanted: dict[str, Any], pointer: str) -> None:
    """With a pointer to it."""
    reply = keyed_wire.send("POST", "/v1/keys", {"label": "x", "scopes": ["read"]} | wanted)
    assert (reply.status, reply.body["code"], reply.body["errors"][0]["pointer"]) == (422, "validation_failed", pointer)


def test_a_key_may_be_good_until_the_end_of_time(keyed_wire: JsonClient) -> None:
    """As far as it can be written down."""
    until = "9999-12-31T23:59:59.999999Z"
    made = keyed_wire.send("POST", "/v1/keys", {"label": "x", "scopes": ["read"], "expires_at": until})
    assert (made.status, made.body["expires_at"]) == (201, until)
    assert keyed_wire.send("GET", "/v1/keys").body["keys"][0]["expires_at"] == until


def test_a_public_key_works_by_unit_alone(keyed_wire: JsonClient, keyed_server: Server, key: str) -> None:
    """Whatever else it asks for on those routes is refused, and nothing drawn."""
    keyed_wire.create(key, arms=arms(2), sticky=True)
    origin = "https://shop.example"
    secret = new_key(keyed_wire, **(_PUBLIC | {"scopes": ["assign", "reward"], "experiments": [key]}))["secret"]
    sent = Credential("", secret, headers={"origin": origin}).sent
    with JsonClient(keyed_server.url) as client:
        asked = client.send("POST", f"/v1/experiments/{key}/assignments", {"unit": "u"}, **sent)
        assert asked.status == 201
        refused = [
            client.send("POST", f"/v1/experiments/{key}/assignments", {}, **sent),
            client.send("POST", f"/v1/experiments/{key}/assignments/batch", {"count": 3}, **sent),
            client.send("POST", f"/v1/experiments/{key}/assignments/{asked.body['id']}/reward", {"reward": 1}, **sent),
            client.send(
                "POST", f"/v1/experiments/{key}/rewards", {"rewards": [{"assignment": asked.body["id"], "reward": 1}]}, **sent
            ),
        ]
        many = [f"many-{number}" for number in range(MOST_PUBLIC_ITEMS + 1)]
        refused.append(client.send("POST", f"/v1/experiments/{key}/assignments/batch", {"units": many}, **sent))
        assert [reply.status for reply in refused] == [403] * 5
        told = client.send("POST", f"/v1/experiments/{key}/rewards", {"rewards": [{"unit": "u", "reward": 1}]}, **sent)
        assert told.body["results"][0]["status"] == "recorded"
    assert keyed_wire.send("GET", f"/v1/experiments/{key}/recommendation").body["draws"] == 1


def test_the_audit_log_names_who_did_it(keyed_wire: JsonClient, keyed_server: Server, key: str) -> None:
    """What people did, corrections included; traffic and the service itself are nobody's."""
    made = new_key(keyed_wire, label="a colleague", scopes=["admin"])
    with JsonClient(keyed_server.url, key=made["secret"]) as colleague:
        colleague.create(key, arms=arms(2))
        drawn = colleague.ask(key)["id"]
        colleague.tell(key, drawn, 1)
        assert colleague.send("PUT", f"/v1/experiments/{key}/assignments/{drawn}/reward", {"reward": 0}).status == 200
        assert colleague.send("PATCH", f"/v1/experiments/{key}/arms/arm-0", {"name": "First"}).status == 200
        assert colleague.send("POST", f"/v1/experiments/{key}/pause").status == 200
    assert keyed_wire.send("POST", f"/v1/experiments/{key}/resume").status == 200
    events = keyed_wire.send("GET", f"/v1/experiments/{key}/events").body["events"]
    who = {"id": made["id"], "label": "a colleague"}
    admin = {"id": "admin", "label": "BESTARM_ADMIN_KEY"}
    assert [(event["kind"], event["actor"]) for event in events] == [
        ("lifecycle", admin),
        ("lifecycle", who),
        ("arm_changed", who),
        ("correction", who),
        ("created", who),
    ]
    assert all("actor" not in event["details"] for event in events)


@pytest.fixture
def two_workers(new_database: NewDatabase) -> Iterator[Server]:
    """A service of two processes that has an administrator's key."""
    with Server(new_database(), workers=2, key=ADMIN_KEY) as running:
        yield running


def test_a_new_key_is_good_at_once_in_every_worker(two_workers: Server) -> None:
    """Whichever of them takes the request, by both ways in; wrong ones beside it are refused in the same words."""
    with JsonClient(two_workers.url, key=ADMIN_KEY) as admin:
        admin.create("asked", arms=arms(2))
        for _ in range(3):
            secret = new_key(admin, scopes=["assign"])["secret"]
            seen: dict[str, set[tuple[int, str | None]]] = {"good": set(), "wrong": set()}
            for number in range(8):  # a new connection each time: any worker may take it
                with JsonClient(two_workers.url, by_framework=number % 2 == 1) as client:
                    for name, sent in (("good", secret), ("wrong", secret[:-2] + "-_")):
                        reply = client.send("POST", "/v1/experiments/asked/assignments", **Credential("", sent).sent)
                        seen[name].add((reply.status, reply.body.get("code")))
                        assert reply.headers["x-request-id"]
            assert seen == {"good": {(201, None)}, "wrong": {(401, "unauthorized")}}


def test_a_revocation_reaches_every_worker_in_time(two_workers: Server) -> None:
    """Under load by many connections, asks and reads: none of the key's requests is taken later than two seconds after."""
    with JsonClient(two_workers.url, key=ADMIN_KEY) as admin:
        admin.create("loaded", arms=arms(2))
        made = new_key(admin, scopes=["read", "assign"])
        accepted, stop = [0.0] * 8, threading.Event()

        def load(number: int) -> None:
            path = "/v1/experiments/loaded/assignments" if number % 2 else "/v1/experiments"
            with JsonClient(two_workers.url, key=made["secret"]) as client:
                while not stop.is_set():
                    began = time.monotonic()
                    if client.send("POST" if number % 2 else "GET", path).status != 401:
                        accepted[number] = began

        threads = [threading.Thread(target=load, args=(number,)) for number in range(len(accepted))]
        for thread in threads:
            thread.start()
        _wait_until(lambda: all(accepted))
        assert admin.send("DELETE", f"/v1/keys/{made['id']}").status == 204
        revoked = time.monotonic()
        time.sleep(3.0)  # what is asserted is that nothing happens in the last second of it
        stop.set()
        for thread in threads:
            thread.join()
    assert max(accepted) < revoked + 2.0


_LATE: dict[str, dict[str, Any]] = {
    "assignments/batch": {"units": ["late"]},
    "arms": {"key": "late"},
    "rewards": {"rewards": [{"unit": "early", "reward": 1}]},
    "assignments": {"unit": "late"},
}


@pytest.mark.parametrize("path", _LATE)
def test_a_body_that_comes_after_the_revocation(keyed_server: Server, keyed_wire: JsonClient, key: str, path: str) -> None:
    """Whoever sent the head in time, and the end of the body not, is refused; by the fast path, too."""
    keyed_wire.create(key, arms=arms(2), sticky=True)
    keyed_wire.ask(key, "early")
    made = new_key(keyed_wire, scopes=["assign", "reward", "manage"])
    content = json.dumps(_LATE[path]).encode()
    head = (
        f"POST /v1/experiments/{key}/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {made['secret']}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    with (
        Rows(keyed_server.database_url) as rows,
        socket.create_connection(("127.0.0.1", keyed_server.port), timeout=30) as wire,
        wire.makefile("rb") as reading,
    ):
        wire.sendall(head.encode() + content[:-1])
        # Its bytes are read before those of a later connection: the head has been let in.
        assert keyed_wire.send("DELETE", f"/v1/keys/{made['id']}").status == 204
        before = rows.fingerprint()
        wire.sendall(content[-1:])
        assert int(reading.readline().split()[1]) == 401
        assert rows.fingerprint() == before


def test_a_stream_ends_with_its_key(keyed_server: Server, keyed_wire: JsonClient, key: str) -> None:
    """Whoever watched with it is shown nothing more."""
    keyed_wire.create(key, arms=arms(2))
    made = new_key(keyed_wire)
    with (
        keyed_server.client() as client,
        client.stream("GET", f"/v1/experiments/{key}/stream", headers={"Authorization": f"Bearer {made['secret']}"}) as stream,
    ):
        lines = stream.iter_lines()
        assert any(line.startswith("id: ") for line in lines)
        keyed_wire.send("DELETE", f"/v1/keys/{made['id']}")
        keyed_wire.ask(key)
        assert not any(line.startswith("id: ") for line in lines)


def _wait_until(holds: Any) -> None:  # noqa: ANN401 - a condition
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
