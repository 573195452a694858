"""The metrics page: what Prometheus reads, whatever the number of workers and whichever way a request took."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.domain.callers import ALL_SCOPES, Caller
from service.web import request_metrics
from service.web.request_metrics import AUTH_FAILURES, count_request, exposition, show_requests_by_key
from testing.credentials import Credential, of_each_kind
from testing.json_client import JsonClient, arms
from testing.processes import wait_until
from testing.server import ADMIN_KEY, NO_CERTIFICATES, Server
from tests.docs.texts import ROOT, text_of

_ASK = "/v1/experiments/{key}/assignments"
_REQUESTS = "bestarm_request_seconds_count"
_TELL = "/v1/experiments/{key}/assignments/{id}/reward"


def read(client: httpx.Client) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of the page, by its name and labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.text)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def count(client: httpx.Client, name: str, **labels: str) -> float:
    """One sample; zero if it is not there."""
    return read(client).get((name, tuple(sorted(labels.items()))), 0.0)


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def serving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service of its own, so that nobody else is counted."""
    url = f"sqlite:///{tmp_path_factory.mktemp('metrics')}/bestarm.db"
    with Server(url, workers=request.param) as running:
        yield running


def test_what_alerts_go_by_is_shown_before_it_happens(serving: Server) -> None:
    """At 0 from the start, with one worker and with two: what appears at its first event has not grown for an alert."""
    with serving.client() as client:
        shown = read(client)
    watched: set[tuple[str, tuple[tuple[str, str], ...]]] = {
        ("bestarm_group_failures_total", ()),
        ("bestarm_webhook_disabled_total", ()),
    }
    watched |= {("bestarm_problems_total", (("code", code),)) for code in ("internal_error", "overloaded")}
    watched |= {("bestarm_auth_failures_total", (("reason", reason),)) for reason in AUTH_FAILURES}
    assert {one: shown.get(one) for one in watched} == dict.fromkeys(watched, 0.0)


def test_every_reason_that_a_key_is_refused_for_is_known() -> None:
    """Those that the code gives, wherever it refuses, are those that are shown and those that the page of operations lists."""
    code = "".join(path.read_text() for path in (ROOT / "service").rglob("*.py"))
    given = set(re.findall(r'Unauthorized\("(\w+)"', code)) | set(re.findall(r'Forbidden\("[^"]+", "(\w+)"\)', code))
    assert given <= set(AUTH_FAILURES)
    page = text_of("docs/operations.md")
    told = re.findall(r"^(?:\| `bestarm_auth_failures_total` |Sign-ins with an account).*$", page, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(told))) - {"bestarm_auth_failures_total", "reason"} == set(AUTH_FAILURES)


def test_asks_and_tells_are_counted_over_all_workers(serving: Server) -> None:
    """Requests by route and status, events by kind, refusals by code, on connections that reach every worker."""
    arms = [{"key": "grey"}, {"key": "green"}]
    assert httpx.post(f"{serving.url}/v1/experiments", json={"key": "counted", "arms": arms}).status_code == 201
    for _ in range(12):  # a new connection each time: any worker may take it
        asked = httpx.post(f"{serving.url}/v1/experiments/counted/assignments", json={}, verify=NO_CERTIFICATES)
        reward = f"{serving.url}/v1/experiments/counted/assignments/{asked.json()['id']}/reward"
        assert httpx.post(reward, json={"reward": 1}, verify=NO_CERTIFICATES).status_code == 200
        assert httpx.post(reward, json={"reward": 0}, verify=NO_CERTIFICATES).status_code == 409
    with serving.client() as client:
        assert count(client, "bestarm_request_seconds_count", method="POST", route=_ASK, status="201") == 12
        assert count(client, "bestarm_request_seconds_count", method="POST", route=_TELL, status="200") == 12
        assert count(client, "bestarm_request_seconds_count", method="POST", route=_TELL, status="409") == 12
        assert count(client, "bestarm_request_seconds_count", method="POST", route="/v1/experiments", status="201") == 1
        assert count(client, "bestarm_events_total", kind="draw") == 12
        assert count(client, "bestarm_events_total", kind="reward") == 12
        assert count(client, "bestarm_problems_total", code="reward_conflict") == 12
        assert count(client, "bestarm_group_requests_sum") >= 36
        assert count(client, "bestarm_group_seconds_count") == count(client, "bestarm_group_requests_count") > 0
        assert count(client, "bestarm_queue_depth") == 0


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two workers with keys, which nobody else uses."""
    url = f"sqlite:///{tmp_path_factory.mktemp('keyed')}/bestarm.db"
    with Server(url, workers=2, measured=True, key=ADMIN_KEY) as running:
        yield running


def test_requests_by_key_and_reason_add_up_to_what_clients_saw(keyed: Server) -> None:
    """Over two workers and both ways in: every answer once, by the id of its key, and every refusal by what was wrong."""
    with JsonClient(keyed.url, key=ADMIN_KEY) as admin:
        admin.create("counted", arms=arms(2), sticky=True)
        names = {one.name: one for one in of_each_kind(admin, "counted") if "session" not in one.name}
        made = {key["prefix"]: key["id"] for key in admin.send("GET", "/v1/keys?page_size=100").body["keys"]}
    seen: Counter[str] = Counter()
    answered: Counter[int] = Counter()
    with keyed.client() as client:  # by the administrator's key
        # Each worker shows requests by their key a moment after they were answered: none of before may come in between. The look
        # that counts by key is itself among those that the next look counts.
        wait_until(lambda: _by_key(client).total() + 1 == _requests(client), "all is shown")
        before, refused_before = _by_key(client), _by_reason(client)
    for round_ in range(3):  # a new connection each time: any worker may take it
        for credential in names.values():
            for by_framework in (False, True):
                with JsonClient(keyed.url, by_framework=by_framework) as wire:
                    body = {"unit": f"u{round_}"}
                    reply = wire.send("POST", "/v1/experiments/counted/assignments", body, **credential.sent)
                answered[reply.status] += 1
                seen[_key_of(credential, made)] += 1
    assert answered.keys() == {200, 201, 401, 403, 404}
    expected = {
        "missing": 6,
        "malformed": 24,
        "unknown": 6,
        "revoked": 6,
        "expired": 6,
        "scope": 18,
        "experiment": 6,
        "origin": 18,
    }
    deadline = time.monotonic() + 20
    with keyed.client() as client:
        while True:
            by_key = _by_key(client) - before
            del by_key["admin"]  # those that look
            by_reason = _by_reason(client) - refused_before
            statuses = _by_status(client)
            if (by_key, dict(by_reason), statuses) == (seen, expected, answered):
                break
            assert time.monotonic() < deadline, (by_key, seen, by_reason, statuses, answered)
            time.sleep(0.1)


def _key_of(credential: Credential, made: dict[str, str]) -> str:
    """The id that a request with this credential is counted under: nobody's, if it is good for nothing here."""
    if not credential.scopes:
        return "none"
    return next(key for prefix, key in made.items() if (credential.secret or "").startswith(f"{prefix}_"))


def _by_key(client: httpx.Client) -> Counter[str]:
    return _sums(client, "bestarm_key_requests_total", "key")


def _by_status(client: httpx.Client) -> Counter[int]:
    """Asks, and what was refused before its route was known."""
    statuses = Counter[int]()
    for (name, labels), value in read(client).items():
        if name == _REQUESTS and dict(labels)["route"] in {_ASK, "other"}:
            statuses[int(dict(labels)["status"])] += int(value)
    return statuses


def _requests(client: httpx.Client) -> int:
    """Every request that was answered, whoever sent it."""
    return sum(int(value) for (name, _), value in read(client).items() if name == _REQUESTS)


def _by_reason(client: httpx.Client) -> Counter[str]:
    return _sums(client, "bestarm_auth_failures_total", "reason")


def _sums(client: httpx.Client, name: str, label: str) -> Counter[str]:
    return Counter({dict(labels)[label]: int(value) for (one, labels), value in read(client).items() if one == name})


def test_only_so_many_keys_have_a_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones that are used; all others are counted together."""
    monkeypatch.setattr(request_metrics, "_named_keys", set())
    monkeypatch.setattr(request_metrics, "_by_key", Counter())  # without what other tests have counted
    for number in range(300):
        count_request("GET", "/healthz", 200, 0.0, Caller(ALL_SCOPES, f"key_of_many_{number}"))
    asyncio.run(show_requests_by_key())
    shown = exposition().decode()
    assert shown.count('bestarm_key_requests_total{key="key_of_many_') == 100
    assert 'bestarm_key_requests_total{key="other"} 200.0' in shown


def test_what_a_lane_changes_is_counted(serving: Server) -> None:
    """A batch that another process draws shows in the numbers soon after its answer."""
    with serving.client() as client:
        made = {"key": "drawn-elsewhere", "arms": [{"key": "grey"}, {"key": "green"}]}
        assert client.post("/v1/experiments", json=made).status_code == 201
        before = count(client, "bestarm_events_total", kind="draw")
        asked = client.post("/v1/experiments/drawn-elsewhere/assignments/batch", json={"count": 2_000})
        assert asked.status_code == 201
        deadline = time.monotonic() + 20
        while (counted := count(client, "bestarm_events_total", kind="draw") - before) < 2_000:
            assert time.monotonic() < deadline, counted
            time.sleep(0.05)
    assert counted == 2_000


def test_both_ways_of_an_ask_count_under_one_name(serving: Server) -> None:
    """The short way and the framework serve the same routes."""
    arms = [{"key": "grey"}, {"key": "green"}]
    with serving.client() as client:
        client.post("/v1/experiments", json={"key": "both-ways", "arms": arms})
        labels = {"method": "POST", "route": _ASK, "status": "201"}
        before = count(client, "bestarm_request_seconds_count", **labels)
        client.post("/v1/experiments/both-ways/assignments", json={})
        client.post("/v1/experiments/both-ways/assignments", json={}, headers={"Origin": serving.url})
        assert count(client, "bestarm_request_seconds_count", **labels) == before + 2


def test_polls_that_know_the_newest_state_are_counted(serving: Server) -> None:
    """A 304 is answered before the framework, and under the same name."""
    labels = {"method": "GET", "route": "/v1/experiments/{key}/recommendation"}
    with serving.client() as client:
        client.post("/v1/experiments", json={"key": "polled", "arms": [{"key": "grey"}, {"key": "green"}]})
        look = client.get("/v1/experiments/polled/recommendation")
        again = client.get("/v1/experiments/polled/recommendation", headers={"If-None-Match": look.headers["etag"]})
        assert again.status_code == 304
        assert count(client, "bestarm_request_seconds_count", **labels, status="200") == 1
        assert count(client, "bestarm_request_seconds_count", **labels, status="304") == 1


def test_no_client_can_make_up_a_series(serving: Server) -> None:
    """Paths that match nothing and methods that nobody knows count under one name."""
    with serving.client() as client:
        for path in ("/nothing", "/nothing/else"):
            assert client.request("TRACE", path).status_code == 404
        assert count(client, "bestarm_request_seconds_count", method="other", route="other", status="404") == 2
        labels = {dict(labels).get("route") for name, labels in read(client) if name == "bestarm_request_seconds_count"}
        assert not any("nothing" in (label or "") for label in labels)


def test_an_ask_whose_client_left_is_counted_too(serving: Server) -> None:
    """It took effect, so it was a request that was answered, though nobody read that."""
    with serving.client() as client:

        def counted() -> tuple[float, float]:
            asked = count(client, "bestarm_request_seconds_count", method="POST", route=_ASK, status="201")
            return count(client, "bestarm_events_total", kind="draw"), asked

        client.post("/v1/experiments", json={"key": "left", "arms": [{"key": "grey"}, {"key": "green"}]})
        draws_before, asked_before = counted()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", serving.port)) as leaving:
                leaving.sendall(b"POST /v1/experiments/left/assignments HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        deadline = time.monotonic() + 10
        while (now := counted())[0] < draws_before + 1 or now[0] - draws_before != now[1] - asked_before:
            assert time.monotonic() < deadline, now
            time.sleep(0.1)


@pytest.mark.process
def test_a_dead_worker_leaves_its_counts_but_not_its_queue(tmp_path: Path) -> None:
    """Counters never fall when a worker is replaced; what waited in it is not shown for ever."""
    with Server(f"sqlite:///{tmp_path}/bestarm.db", workers=2, TMPDIR=str(tmp_path)) as running, running.client() as client:
        arms = [{"key": "grey"}, {"key": "green"}]
        client.post("/v1/experiments", json={"key": "mortal", "arms": arms})
        client.post("/v1/experiments/mortal/assignments", json={})
        (folder,) = tmp_path.glob("bestarm-metrics-*")
        deadline = time.monotonic() + 20
        queues: list[Path] = []
        # A draw is counted a moment after it is answered, and the other worker may still be starting.
        while (counted := count(client, "bestarm_events_total", kind="draw")) != 1 or len(queues) != 2:
            assert time.monotonic() < deadline, (counted, queues)
            time.sleep(0.1)
            queues = sorted(folder.glob("gauge_livesum_*.db"))
        held = queues[0]
        os.kill(int(held.stem.rpartition("_")[2]), signal.SIGKILL)
        deadline = time.monotonic() + 20
        while held.exists() and time.monotonic() < deadline:
            try:
                read(client)
            except httpx.TransportError:  # the connection belonged to the worker that died
                time.sleep(0.1)
        assert not held.exists()
        assert count(client, "bestarm_events_total", kind="draw") == 1
    assert not folder.exists()
