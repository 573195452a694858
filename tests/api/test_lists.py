"""Lists: filters, order, pages, times, and parameters that no route knows."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from service.main import create_app
from testing.json_client import JsonClient, arms

DOCUMENT: dict[str, Any] = create_app().openapi()


@pytest.fixture
def family(wire: JsonClient, key: str) -> str:
    """Five experiments whose keys begin alike."""
    for number, (tags, owner) in enumerate([([], None), (["a"], "ann"), (["a", "b_c"], "bob"), (["bxc"], "ann"), (["ab"], "")]):
        settings = {"tags": tags} | ({} if owner is None else {"owner": owner})
        wire.create(f"{key}-{number}", name=f"Größe {4 - number}%", arms=arms(2), **settings)
    wire.send("POST", f"/v1/experiments/{key}-3/pause")
    return key


def _found(wire: JsonClient, family: str, query: str) -> list[int]:
    page = wire.send("GET", f"/v1/experiments?q={family}-&{query}")
    assert page.status == 200, page
    return [int(one["key"].rpartition("-")[2]) for one in page.body["experiments"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [4, 3, 2, 1, 0]),
        ("status=paused", [3]),
        ("status=draft", []),
        ("tag=a", [2, 1]),
        ("tag=b_c", [2]),
        ("tag=c", []),
        ("owner=ann", [3, 1]),
        ("owner=an", []),
        ("owner=", [4]),
        ("owner=ann&tag=a&status=running", [1]),
        ("sort=created_at", [0, 1, 2, 3, 4]),
        ("sort=key", [0, 1, 2, 3, 4]),
        ("sort=-key", [4, 3, 2, 1, 0]),
    ],
)
def test_experiments_are_found(wire: JsonClient, family: str, query: str, found: list[int]) -> None:
    """By status, tag and owner, each alone and together, in any order; what is part of a word is not the word."""
    assert _found(wire, family, query) == found


def test_text_is_found_in_key_and_name(wire: JsonClient, family: str) -> None:
    """Whatever its case, and with the signs that SQL has a meaning for."""
    for text, found in ((f"{family}-2".upper(), [f"{family}-2"]), ("größe 1%", [f"{family}-3"]), ("größe _%", [])):
        keys = [one["key"] for one in wire.send("GET", f"/v1/experiments?page_size=1000&q={quote(text)}").body["experiments"]]
        assert [one for one in keys if one.startswith(family)] == found


@pytest.mark.parametrize("sort", ["-created_at", "created_at", "key", "-key"])
def test_pages_keep_their_order(wire: JsonClient, family: str, sort: str) -> None:
    """Page after page is the whole list, without gap or repeat."""
    whole = _found(wire, family, f"sort={sort}")
    paged, following = [], ""
    for place in range(len(whole)):
        page = wire.send("GET", f"/v1/experiments?q={family}-&sort={sort}&page_size=1{following}").body
        paged += [int(one["key"].rpartition("-")[2]) for one in page["experiments"]]
        following = f"&page_token={page['next_page_token']}"
        assert (page["next_page_token"] is None) == (place == len(whole) - 1)
    assert paged == whole


def test_tags_and_owner_are_patched(wire: JsonClient, family: str) -> None:
    """And leave their trace in the audit log."""
    path = f"/v1/experiments/{family}-1"
    patched = wire.send("PATCH", path, {"tags": ["new"], "owner": None})
    assert (patched.status, patched.body["tags"], patched.body["owner"]) == (200, ["new"], None)
    details = wire.send("GET", f"{path}/events").body["events"][0]["details"]
    assert details == {"before": {"tags": ["a"], "owner": "ann"}, "after": {"tags": ["new"], "owner": None}}
    assert _found(wire, family, "tag=new") == [1]


@pytest.mark.parametrize(
    "settings",
    [{"tags": ["A"]}, {"tags": ["a", "a"]}, {"tags": [""]}, {"tags": [f"t{n}" for n in range(21)]}, {"owner": "x" * 101}],
)
def test_what_is_no_tag_and_no_owner(wire: JsonClient, experiment: str, settings: dict[str, Any]) -> None:
    """Tags have the form of keys, differ, and are 20 at most; an owner has 100 characters at most."""
    assert wire.send("PATCH", f"/v1/experiments/{experiment}", settings).status == 422
    assert wire.send("POST", "/v1/experiments", {"key": f"{experiment}-2", "arms": arms(2)} | settings).status == 422


def test_assignments_and_events_of_a_time(wire: JsonClient, key: str) -> None:
    """`since` is inside, `until` is not; offsets are understood, and pages stay inside."""
    wire.create(key, arms=arms(2))
    asked = [wire.ask(key) for _ in range(6)]
    wire.send("POST", f"/v1/experiments/{key}/pause")
    third, fifth = asked[2]["created_at"], asked[4]["created_at"]
    path = f"/v1/experiments/{key}/assignments"

    def draws(query: str) -> list[int]:
        return [one["draw"] for one in wire.send("GET", f"{path}?{query}").body["assignments"]]

    assert draws(f"since={third}&until={fifth}") == [4, 3]
    assert draws(f"since={quote(third.replace('Z', '+00:00'))}") == [6, 5, 4, 3]
    assert draws(f"until={third.removesuffix('Z')}") == [2, 1]
    assert draws("since=9999-12-31") == draws("until=0001-01-01T00:00:00Z") == []
    page = wire.send("GET", f"{path}?since={third}&page_size=3").body
    rest = wire.send("GET", f"{path}?since={third}&page_size=3&page_token={page['next_page_token']}").body
    assert [one["draw"] for one in rest["assignments"]] == [3]
    events = wire.send("GET", f"/v1/experiments/{key}/events?since={third}").body["events"]
    assert [event["kind"] for event in events] == ["lifecycle"]
    assert [one["kind"] for one in wire.send("GET", f"/v1/experiments/{key}/events?until={third}").body["events"]] == ["created"]


def test_a_page_of_a_thousand(wire: JsonClient, key: str) -> None:
    """At most; one more is refused."""
    wire.create(key, arms=arms(2))
    wire.send("POST", f"/v1/experiments/{key}/assignments/batch", {"count": 1001})
    page = wire.send("GET", f"/v1/experiments/{key}/assignments?page_size=1000").body
    assert len(page["assignments"]) == 1000
    assert page["next_page_token"]
    assert wire.send("GET", f"/v1/experiments/{key}/assignments?page_size=1001").status == 422


OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_no_route_takes_a_parameter_that_it_does_not_know(api: httpx.Client, experiment: str, path: str, method: str) -> None:
    """422 that names it, on every route there is; and so is one that is given twice."""
    concrete = re.sub(r"\{\w+\}", "means", path.replace("{key}", experiment))
    unknown = api.request(method, f"{concrete}?pagesize=3")
    if path.startswith("/ofrep/"):
        assert (unknown.status_code, unknown.json()["errorCode"]) == (400, "INVALID_CONTEXT")
        return
    assert (unknown.status_code, unknown.json()["code"]) == (422, "validation_failed")
    assert [error["pointer"] for error in unknown.json()["errors"]] == ["/query/pagesize"]
    declared = [one["name"] for one in DOCUMENT["paths"][path][method].get("parameters", []) if one["in"] == "query"]
    for name in declared:
        twice = api.request(method, f"{concrete}?{name}=1&{name}=1")
        assert [error["pointer"] for error in twice.json()["errors"]] == [f"/query/{name}"]


@pytest.mark.parametrize("time", ["yesterday", "2026-13-01", "1767225600", "2026-01-01T00:00:00 00:00", ""])
@pytest.mark.parametrize("name", ["since", "until"])
def test_what_is_no_time(wire: JsonClient, experiment: str, name: str, time: str) -> None:
    """Times are written in ISO 8601."""
    refused = wire.send("GET", f"/v1/experiments/{experiment}/events?{name}={quote(time)}")
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, f"/query/{name}")


def test_experiments_of_a_time(wire: JsonClient, family: str) -> None:
    """By their creation: `since` is inside, `until` is not; in any order, and page by page."""
    times = {number: wire.send("GET", f"/v1/experiments/{family}-{number}").body["created_at"] for number in range(5)}
    assert _found(wire, family, f"since={times[1]}&until={times[4]}") == [3, 2, 1]
    assert _found(wire, family, f"since={times[1]}&until={times[4]}&sort=key&owner=ann") == [1, 3]
    assert _found(wire, family, f"until={times[2]}&tag=a") == [1]
    assert _found(wire, family, "since=9999-12-31") == []
    page = wire.send("GET", f"/v1/experiments?since={times[1]}&sort=created_at&q={family}-&page_size=3").body
    query = f"since={times[1]}&sort=created_at&page_size=3&page_token={page['next_page_token']}"
    assert _found(wire, family, query) == [4]


def test_the_log_of_a_time(wire: JsonClient, key: str) -> None:
    """Deletions from a time on, and up to another."""
    for number in range(3):
        wire.create(f"{key}-{number}", arms=arms(2), status="draft")
        assert wire.send("DELETE", f"/v1/experiments/{key}-{number}?confirm={key}-{number}").status == 204
    entries = [one for one in wire.send("GET", "/v1/log").body["entries"] if one["details"]["experiment"].startswith(f"{key}-")]
    at = [one["at"] for one in entries]
    found = wire.send("GET", f"/v1/log?since={at[1]}&until={at[0]}").body
    assert [one["id"] for one in found["entries"]] == [entries[1]["id"]]
    assert found["next_page_token"] is None
    assert wire.send("GET", f"/v1/log?until={at[2]}&page_size=1000").body["entries"] == [
        one for one in wire.send("GET", "/v1/log?page_size=1000").body["entries"] if one["at"] < at[2]
    ]
