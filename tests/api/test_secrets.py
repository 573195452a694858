"""Secrets of keys show nowhere but in the answer that makes them; and what is wrong with a key takes the same time to find."""

from __future__ import annotations

import sqlite3
import statistics
import time
from contextlib import closing
from itertools import product
from pathlib import Path

import httpx
import pytest

from service.storage.tables import metadata
from testing.credentials import ORIGIN, of_each_kind, session_of
from testing.databases import NewDatabase
from testing.json_client import JsonClient, Reply, arms
from testing.rows import Rows
from testing.server import ADMIN_KEY, Server, bearer

_TRIES = 400
_ASK = "/v1/experiments/kept/assignments"


def _secret_parts(secrets: list[str]) -> list[bytes]:
    """What nobody may see of them: a key's beginning is its name."""
    return [(secret[-43:] if secret.startswith("ba") else secret).encode() for secret in secrets]


def _used_in_every_way(server: Server, secret: str) -> list[Reply]:
    """Right and wrong, by both ways in; the answers."""
    replies = []
    for by_framework, headers in product((False, True), _headers_with(secret)):
        with JsonClient(server.url, by_framework=by_framework) as wire:
            replies.append(wire.send("POST", _ASK, {"unit": "somebody"}, **headers))
            replies.append(wire.send("POST", _ASK, {"unit": 7}, **headers))
            replies.append(wire.send("GET", "/v1/experiments/kept", **headers))
            replies.append(wire.send("GET", "/v1/keys", **headers))
            replies.append(wire.send("GET", "/v1/experiments/broken", **headers))
    return replies


def _headers_with(secret: str) -> list[dict[str, str]]:
    good = f"Bearer {secret}"
    own = {"authorization": good, "origin": ORIGIN}
    return [own, {"authorization": good}, {"authorization": secret}, {"authorization": f"{good}x"}, {"x-api-key": secret}]


def _misplace(server: Server, secret: str) -> None:
    """In places where no key belongs: what its sender is answered is their own business, but nobody else's."""
    with httpx.Client(base_url=server.url, headers=bearer(ADMIN_KEY)) as client:
        for path in (f"/v1/experiments/{secret}", f"/v1/keys/{secret}", f"/{secret}", f"/v1/experiments/kept/arms/{secret}"):
            client.get(path)
            client.get("/v1/experiments/kept", params={"key": secret})
            client.post(f"/v1/experiments/{secret}/assignments", json={"unit": "u"})
            client.post(_ASK, json={"unit": "u", secret: secret})
            client.post("/v1/keys", json={"label": "x", "scopes": [secret]})
            client.post(_ASK, content=b"{" + secret.encode(), headers={"Content-Type": "application/json"})


def _hooks_used(admin: JsonClient) -> list[str]:
    """A webhook whose messages fail, which is logged; its secrets, and its path, which may be one. They are stored."""
    made = admin.send(
        "POST", "/v1/webhooks", {"url": "http://localhost:9/services/T0/a-secret-of-slack", "experiments": ["kept"]}
    )
    assert made.status == 201
    path = f"/v1/webhooks/{made.body['id']}"
    secrets = [made.body["secret"], admin.send("POST", f"{path}/rotate", {}).body["secret"]]
    admin.send("POST", f"{path}/test")
    admin.send("POST", "/v1/experiments/kept/pause")
    deadline = time.monotonic() + 30
    while not any(one["attempts"] for one in admin.send("GET", f"{path}/deliveries?status=waiting").body["deliveries"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    shown = [admin.send("GET", one).body for one in (path, "/v1/webhooks", f"{path}/deliveries", "/v1/log")]
    assert [secret for secret in secrets if secret in str(shown)] == []
    assert "a-secret-of-slack" not in str(shown[2:])
    return [*secrets, *(secret.removeprefix("whsec_") for secret in secrets), "a-secret-of-slack"]


def _stored(database_url: str) -> bytes:
    """Every row of every table, and the file itself where there is one."""
    with Rows(database_url) as rows:
        dumped = [repr(rows.query(f"SELECT * FROM {table}")).encode() for table in sorted(metadata.tables)]
    file = Path(database_url.removeprefix("sqlite:///"))
    files = [path.read_bytes() for path in file.parent.glob(f"{file.name}*")] if file.is_file() else []
    assert any(b"api_keys" in one for one in files) == bool(files)
    return b"\n".join([*dumped, *files])


@pytest.mark.process
def test_no_secret_shows_anywhere(new_database: NewDatabase) -> None:
    """Of a key or of a session: not in the log at its most talkative, the access log, metrics, errors, lists, or the database."""
    url = new_database()
    with (
        Server(
            url,
            measured=True,
            key=ADMIN_KEY,
            BESTARM_LOG_LEVEL="debug",
            BESTARM_ACCESS_LOG="1",
            BESTARM_PUBLIC_RATE_BURST="5",
            BESTARM_PUBLIC_RATE_LIMIT="0.01",
        ) as server,
        JsonClient(server.url, key=ADMIN_KEY) as admin,
    ):
        admin.create("kept", arms=arms(2))
        admin.create("broken", arms=arms(2))
        credentials = of_each_kind(admin, "kept")
        old = admin.send("POST", "/v1/keys", {"label": "old", "scopes": ["read"]}, idempotency_key="once").body
        assert admin.send("POST", "/v1/keys", {"label": "old", "scopes": ["read"]}, idempotency_key="once").status == 201
        new = admin.send("POST", f"/v1/keys/{old['id']}/rotate", {"grace_seconds": 60}).body
        secrets = [ADMIN_KEY, old["secret"], new["secret"], *(one.secret for one in credentials if len(one.secret or "") > 45)]
        if url.startswith("sqlite"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as rows, rows:
                rows.execute("UPDATE experiments SET policy = '{' WHERE key = 'broken'")
        replies = [reply for secret in secrets for reply in _used_in_every_way(server, secret)]
        sessions = [session_of(admin, secret)["cookie"] for secret in (ADMIN_KEY, new["secret"])]
        with JsonClient(server.url) as browser:
            for cookie in sessions:
                replies += [
                    browser.send("GET", path, cookie=cookie) for path in ("/dashboard/session", "/v1/experiments", "/v1/keys")
                ]
                assert browser.send("DELETE", "/dashboard/session", cookie=cookie).status == 204
                replies.append(browser.send("GET", "/v1/experiments", cookie=cookie))
        secrets += [cookie.partition("=")[2] for cookie in sessions]
        replies += [admin.send("GET", path) for path in ("/v1/keys?page_size=100", "/v1/log", "/v1/experiments/kept/events")]
        for secret in secrets:
            _misplace(server, secret)
        hooks = _hooks_used(admin)
        metrics = httpx.get(f"{server.url}/metrics", headers=bearer(ADMIN_KEY))
        assert metrics.status_code == 200
        logged = server.log.read_bytes()
    statuses = {reply.status for reply in replies}
    assert {200, 201, 401, 403, 422, 429} <= statuses
    assert (500 in statuses) == url.startswith("sqlite")
    answered = b"\n".join(repr((reply.headers.items(), reply.body)).encode() for reply in replies)
    for where, text in {"log": logged, "metrics": metrics.content, "answers": answered, "database": _stored(url)}.items():
        assert [part for part in _secret_parts(secrets) if part in text] == [], where
    for where, text in {"log": logged, "metrics": metrics.content}.items():
        assert [part for part in hooks if part.encode() in text] == [], where
    assert b"a message was not delivered" in logged
    assert logged.count(b'"event":"request"') > 500


def _answer_times(
    server: Server, groups: dict[str, str], line: tuple[str, str], good: str | None, tries: int
) -> dict[str, list[float]]:
    """How long refusals took, interleaved; each on a connection that has just sent the good key, if there is one."""
    took: dict[str, list[float]] = {name: [] for name in groups}
    with JsonClient(server.url) as client:
        for number in range(tries):
            for name in list(groups)[:: 1 if number % 2 else -1]:
                if good is not None:
                    assert client.send(*line, authorization=f"Bearer {good}").status == 201
                began = time.perf_counter()
                reply = client.send(*line, authorization=f"Bearer {groups[name]}")
                took[name].append(time.perf_counter() - began)
                assert reply.status == 401
    return took


@pytest.mark.serial
@pytest.mark.parametrize("by_fast_path", [False, True], ids=["by the framework", "by the fast path"])
def test_how_much_of_a_wrong_key_is_right_takes_no_time(
    keyed_server: Server,
    keyed_wire: JsonClient,
    key: str,
    by_fast_path: bool,  # noqa: FBT001 - parametrized
) -> None:
    """Medians of interleaved tries differ no more by how much is right than those of two groups that are alike, or by noise."""
    keyed_wire.create(key, arms=arms(2))
    secret = keyed_wire.send("POST", "/v1/keys", {"label": "timed", "scopes": ["read", "assign"]}).body["secret"]
    line = ("POST", f"/v1/experiments/{key}/assignments") if by_fast_path else ("GET", "/v1/experiments")
    for whole in (secret, ADMIN_KEY):
        # Not of the form of a key at their ends: no wait for what may be new hides a difference.
        wrong = {part: whole[: int(len(whole) * part)].ljust(len(whole), "!") for part in (0.0, 0.5, 0.98)}
        groups = {
            "none": wrong[0.0],
            "none again": wrong[0.0].replace("!", "?"),
            "half": wrong[0.5],
            "all but the end": wrong[0.98],
        }
        took = _answer_times(keyed_server, groups, line, whole if by_fast_path else None, _TRIES // (2 if by_fast_path else 1))
        medians = {name: statistics.median(times) for name, times in took.items()}
        low, _, high = statistics.quantiles(took["none"], n=4)
        alike = abs(medians["none"] - medians["none again"])
        allowed = max(5 * alike, 0.5 * (high - low))
        assert abs(medians["half"] - medians["none"]) <= allowed, medians
        assert abs(medians["all but the end"] - medians["none"]) <= allowed, medians
