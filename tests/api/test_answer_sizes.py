"""No answer is out of proportion: bytes, memory and time of what a small request can ask for are bounded."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient
from testing.memory import most_memory
from testing.server import Server

pytestmark = pytest.mark.process
_MEBIBYTE = 1024 * 1024
_VALUE = "x" * (16 * 1024 - 2)
_LARGE = [{"key": f"arm-{position}", "value": _VALUE} for position in range(500)]


@pytest.fixture(scope="module")
def heavy(new_database: NewDatabase) -> Iterator[Server]:
    """A service with an experiment whose values take 8 MB."""
    with Server(new_database()) as running, JsonClient(running.url) as client:
        client.create("heavy-0", arms=_LARGE)
        # All processes are there before anything is measured.
        assert client.send("GET", "/v1/experiments/heavy-0").status == 200
        assert client.send("GET", "/v1/experiments/heavy-0/history").status == 200
        yield running


@pytest.fixture(scope="module")
def several(heavy: Server) -> Server:
    """With three more of them."""
    with JsonClient(heavy.url) as client:
        for number in range(1, 4):
            client.create(f"heavy-{number}", arms=_LARGE)
    return heavy


@pytest.fixture
def client(heavy: Server) -> Iterator[JsonClient]:
    """A client of it."""
    with JsonClient(heavy.url) as connection:
        yield connection


@pytest.mark.serial
def test_a_large_batch_has_each_value_once(heavy: Server, client: JsonClient) -> None:
    """10,000 assignments with values of 16 KB: 160 MB became 8, in a small multiple of the time and memory of small values."""
    client.create("light", arms=[{"key": arm["key"], "value": 1} for arm in _LARGE])
    began = time.perf_counter()
    small = client.send("POST", "/v1/experiments/light/assignments/batch", {"count": 10_000}).body
    usual = time.perf_counter() - began
    before, began = most_memory(heavy), time.perf_counter()
    answer = client.send("POST", "/v1/experiments/heavy-0/assignments/batch", {"count": 10_000}).body
    assert time.perf_counter() - began < 5 * usual + 1
    assert most_memory(heavy) - before < 64 * _MEBIBYTE
    assert set(small) == {"assignments"}
    assert len(answer["assignments"]) == 10_000
    assert {one["value"] for one in answer["assignments"]} == {None}
    assert answer["values"] == {arm["key"]: _VALUE for arm in _LARGE}
    assert len(json.dumps(answer)) < 16 * _MEBIBYTE


def test_values_are_repeated_up_to_a_mebibyte(client: JsonClient) -> None:
    """64 values of 16 KiB are one mebibyte: so many stand in their assignments, one more and all stand once."""
    exact = [{"key": f"arm-{position}", "value": _VALUE} for position in range(2)]
    client.create("edge", arms=exact)
    path = "/v1/experiments/edge/assignments/batch"
    whole = client.send("POST", path, {"count": 64}).body
    assert "values" not in whole
    assert {one["value"] for one in whole["assignments"]} == {_VALUE}
    shared = client.send("POST", path, {"count": 65}).body
    assert shared["values"] == {arm["key"]: arm["value"] for arm in exact}
    assert {one["value"] for one in shared["assignments"]} == {None}


def test_a_replayed_batch_is_the_same_to_the_byte(client: JsonClient) -> None:
    """Whatever happened to the values since."""
    client.create("again", arms=[{"key": f"arm-{position}", "value": _VALUE} for position in range(2)])
    path = "/v1/experiments/again/assignments/batch"
    first = client.send("POST", path, {"count": 100}, Idempotency_Key="once")
    assert client.send("PATCH", "/v1/experiments/again/arms/arm-0", {"value": 2}).status == 200
    second = client.send("POST", path, {"count": 100}, Idempotency_Key="once")
    assert second.headers["Idempotency-Replayed"] == "true"
    assert second.body == first.body


def test_lists_have_no_values(several: Server, client: JsonClient) -> None:
    """The list of experiments that have 32 MB of values takes a few hundred kilobytes, and no more memory."""
    before = most_memory(several)
    listed: list[dict[str, Any]] = client.send("GET", "/v1/experiments?page_size=100").body["experiments"]
    assert most_memory(several) - before < 16 * _MEBIBYTE
    assert len(json.dumps(listed)) < _MEBIBYTE
    one = next(one for one in listed if one["key"] == "heavy-1")
    read = client.send("GET", "/v1/experiments/heavy-1").body
    assert one == read | {"arms": [{name: arm[name] for name in ("key", "name", "min_share", "status")} for arm in read["arms"]]}


def test_a_page_of_experiments_ends_where_it_has_too_many_arms(new_database: NewDatabase) -> None:
    """At most 10,000 arms on a page, at least one experiment, and all of them over all pages, in order."""
    sizes = [2, 9_000, 900, 10_000, 3, 2]
    with Server(new_database()) as running, JsonClient(running.url) as client:
        for number, size in enumerate(sizes):
            client.create(f"sized-{number}", arms=[{"key": f"a{arm}"} for arm in range(size)])
        pages, token = [], ""
        while token is not None:
            page = client.send("GET", f"/v1/experiments?page_size=100{token and f'&page_token={token}'}").body
            pages.append([len(one["arms"]) for one in page["experiments"]])
            token = page["next_page_token"]
    assert [size for page in pages for size in page] == sizes[::-1]
    assert pages == [[2, 3], [10_000], [900, 9_000, 2]]


def test_a_page_ends_where_it_would_be_too_long(client: JsonClient) -> None:
    """A page of the audit log, whose first entries have large values, ends within 8 MiB, and the next one goes on."""
    key = "audited"
    client.create(key, arms=_LARGE)
    for number in range(3):
        client.send("PATCH", f"/v1/experiments/{key}", {"name": f"name {number}"})
    kinds, token = [], ""
    while token is not None:
        page = client.send("GET", f"/v1/experiments/{key}/events?page_size=100{token and f'&page_token={token}'}").body
        assert len(json.dumps(page)) < 9 * _MEBIBYTE
        kinds += [event["kind"] for event in page["events"]]
        token = page["next_page_token"]
    assert kinds == ["patch", "patch", "patch", "created"]


@pytest.mark.usefixtures("several")
def test_a_large_answer_says_how_long_it_is(client: JsonClient) -> None:
    """It goes out in pieces, and arrives whole."""
    reply = client.send("GET", "/v1/experiments/heavy-2")
    assert int(reply.headers["Content-Length"]) > 8_000_000
    assert [arm["value"] for arm in reply.body["arms"]] == [_VALUE] * len(_LARGE)


@pytest.mark.usefixtures("several")
def test_large_experiments_are_found_and_guarded_as_small_ones_are(client: JsonClient) -> None:
    """Read in a process of its own, a list keeps its filter and its order, and an experiment its ETag."""
    listed = client.send("GET", "/v1/experiments?q=HEAVY-&sort=key&status=running&page_size=3").body
    assert [one["key"] for one in listed["experiments"]] == ["heavy-0", "heavy-1", "heavy-2"]
    rest = client.send("GET", f"/v1/experiments?q=HEAVY-&sort=key&status=running&page_token={listed['next_page_token']}").body
    assert [one["key"] for one in rest["experiments"]] == ["heavy-3"]
    seen = client.send("GET", "/v1/experiments/heavy-3").headers["ETag"]
    changed = client.send("PATCH", "/v1/experiments/heavy-3", {"owner": "ann"}, If_Match=seen)
    assert changed.status == 200
    assert client.send("PATCH", "/v1/experiments/heavy-3", {"owner": "bob"}, If_Match=seen).status == 412
    assert client.send("GET", "/v1/experiments/heavy-3").headers["ETag"] == changed.headers["ETag"]


def test_no_small_request_takes_a_large_answer_or_much_memory(heavy: Server, client: JsonClient) -> None:
    """Every route that shows a large experiment, in a small multiple of its 8 MB: in bytes, and in memory of all processes."""
    key = "bounded"
    client.create(key, arms=_LARGE)
    path = f"/v1/experiments/{key}"
    client.send("POST", f"{path}/assignments/batch", {"count": 2_000})
    before = most_memory(heavy)
    for method, step, body in (
        ("GET", "", None),
        ("GET", "/recommendation", None),
        ("GET", "/assignments?page_size=1000", None),
        ("GET", "/events?page_size=1000", None),
        ("GET", "/history", None),
        ("PATCH", "", {"name": "another"}),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/duplicate", {"key": "bounded-twin"}),
        ("POST", "/assignments/batch", {"count": 10_000}),
        ("PATCH", "/arms/arm-0", {"name": "another"}),
        ("POST", "/conclude", {"arm": "arm-0"}),
        ("POST", "/reopen", None),
    ):
        named = {"Idempotency_Key": step.strip("/")} if method == "POST" else {}
        reply = client.send(method, f"{path}{step}", body, **named)
        assert reply.status in (200, 201), (step, reply.status)
        assert int(reply.headers["Content-Length"]) < 12 * _MEBIBYTE, step
    assert most_memory(heavy) - before < 384 * _MEBIBYTE
