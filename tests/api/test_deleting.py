"""Delete: gone for everybody at once, its key free, its rows soon after; written down in the log of the instance."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from service.storage.tables import metadata
from testing.json_client import JsonClient, Reply, arms
from testing.rows import Rows

_OWNED = [table.name for table in metadata.sorted_tables if "experiment_id" in table.columns]
# Rows that not every experiment has: of one that was pruned, and where there are webhooks.
_RARE = {"prunings", "webhook_cursors"}


def _delete(wire: JsonClient, key: str, confirm: str | None = None) -> Reply:
    return wire.send("DELETE", f"/v1/experiments/{key}?confirm={key if confirm is None else confirm}")


def _archive(wire: JsonClient, key: str) -> None:
    wire.send("POST", f"/v1/experiments/{key}/conclude", {"arm": "arm-0"})
    assert wire.send("POST", f"/v1/experiments/{key}/archive").status == 200


def _id_of(rows: Rows, key: str) -> int:
    return int(rows.query("SELECT id FROM experiments WHERE key = :key", key=key)[0][0])


def _rows_left(rows: Rows, experiment_id: int) -> int:
    counted = " + ".join(f"(SELECT count(*) FROM {table} WHERE experiment_id = :e)" for table in _OWNED)
    return int(rows.query(f"SELECT {counted} + (SELECT count(*) FROM experiments WHERE id = :e)", e=experiment_id)[0][0])


def _wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def _wait_until_gone(rows: Rows, experiment_id: int) -> None:
    _wait_until(lambda: not _rows_left(rows, experiment_id))


def test_a_deleted_experiment_is_not_found_anywhere(wire: JsonClient, api: httpx.Client, key: str) -> None:
    """Every route under its key is 404 from the moment of the answer, and no list has it."""
    wire.create(key, arms=arms(2), tags=[key])
    assignment = wire.ask(key)["id"]
    wire.tell(key, assignment, 1)
    _archive(wire, key)
    path = f"/v1/experiments/{key}"
    etag = api.get(f"{path}/recommendation").headers["ETag"]
    deleted = api.delete(path, params={"confirm": key})
    assert (deleted.status_code, deleted.content) == (204, b"")
    reads = ("", "/recommendation", "/history", "/events", "/assignments", f"/assignments/{assignment}", "/observations")
    for read in (*reads, "/arms/arm-0", "/charts/means.svg", "/forecast", "/stream"):
        assert api.get(f"{path}{read}", headers={"If-None-Match": etag}).status_code == 404, read
    assert wire.send("POST", f"{path}/assignments", {}).status == 404
    assert wire.send("POST", f"{path}/assignments/{assignment}/reward", {"reward": 1}).status == 404
    assert wire.send("POST", f"{path}/reopen").status == 404
    assert _delete(wire, key).status == 404
    for query in (f"tag={key}", f"q={key}", "status=archived", ""):
        found = wire.send("GET", f"/v1/experiments?page_size=1000&{query}").body["experiments"]
        assert key not in [one["key"] for one in found]
        assert not [one for one in found if "/" in one["key"] or one["status"] == "deleted"]
    at_a_glance = wire.send("GET", f"/dashboard/experiments?text={key}").body
    assert (at_a_glance["total"], at_a_glance["experiments"]) == (0, [])


def test_all_its_rows_go_and_nobody_else_s(wire: JsonClient, rows: Rows, key: str) -> None:
    """Events, assignments, arms, observations, batches, snapshots, replies, whatever it had; its neighbour keeps its own."""
    for name in (key, f"{key}-neighbour"):
        wire.create(name, arms=arms(3), policy={"kind": "almost_tracking"}, expiry={"after_seconds": 0.01, "reward": 0})
        path = f"/v1/experiments/{name}"
        asked = wire.send("POST", f"{path}/assignments/batch", {"count": 700}, Idempotency_Key="many").body["assignments"]
        wire.send("POST", f"{path}/rewards", {"rewards": [{"assignment": one["id"], "reward": 1} for one in asked[:600]]})
        named = [{"arm": f"arm-{number % 3}", "reward": int(number % 3 == 0), "id": f"import {number}"} for number in range(1800)]
        wire.send("POST", f"{path}/observations", {"observations": named}, Idempotency_Key="import")
    experiment, neighbour = _id_of(rows, key), _id_of(rows, f"{key}-neighbour")
    found = "SELECT count(*) FROM findings WHERE experiment_id IN (:e, :n)"
    _wait_until(lambda: rows.query(found, e=experiment, n=neighbour) == [(4,)])
    for table in set(_OWNED) - _RARE:
        assert rows.query(f"SELECT count(*) FROM {table} WHERE experiment_id = :e", e=experiment) > [(0,)], table
    _archive(wire, key)
    _archive(wire, f"{key}-neighbour")
    kept = _rows_left(rows, neighbour)
    assert _delete(wire, key).status == 204
    _wait_until_gone(rows, experiment)
    assert _rows_left(rows, neighbour) == kept


@pytest.mark.parametrize("status", ["running", "paused", "concluded"])
def test_only_drafts_and_archived_experiments_can_be_deleted(wire: JsonClient, key: str, status: str) -> None:
    """Whatever may have users must be archived first."""
    wire.create(key, arms=arms(2))
    if status == "paused":
        wire.send("POST", f"/v1/experiments/{key}/pause")
    if status == "concluded":
        wire.send("POST", f"/v1/experiments/{key}/conclude", {"arm": "arm-0"})
    refused = _delete(wire, key)
    assert (refused.status, refused.body["code"]) == (409, "illegal_transition")
    assert wire.send("GET", f"/v1/experiments/{key}").body["status"] == status
    if status != "concluded":
        wire.send("POST", f"/v1/experiments/{key}/conclude", {"arm": "arm-0"})
    wire.send("POST", f"/v1/experiments/{key}/archive")
    assert _delete(wire, key).status == 204


def test_the_key_must_be_repeated(wire: JsonClient, api: httpx.Client, key: str) -> None:
    """Another word, none, or two of them: 422 with a sentence, and nothing is deleted."""
    wire.create(key, arms=arms(2), status="draft")
    for query in (
        f"?confirm={key}x",
        "?confirm=",
        "?confirm=yes",
        "",
        f"?confirm={key}&confirm={key}",
        f"?confirm={key}&force=1",
    ):
        refused = api.delete(f"/v1/experiments/{key}{query}")
        assert (refused.status_code, refused.json()["code"]) == (422, "validation_failed"), query
    said = _delete(wire, key, "yes").body
    assert said["errors"] == [{"pointer": "/query/confirm", "detail": said["detail"]}]
    assert key in said["detail"]
    assert wire.send("GET", f"/v1/experiments/{key}").status == 200
    assert _delete(wire, f"{key}-nobody").status == 404


def test_the_key_is_free_at_once_and_nothing_of_the_old_one_shows(wire: JsonClient, api: httpx.Client, key: str) -> None:
    """The new experiment has its own arms, data and pictures, also where those of the old one are cached."""
    path = f"/v1/experiments/{key}"
    for turn, status in enumerate(("draft", "running", "running", "draft", "running")):
        wire.create(key, arms=[{"key": f"of-{turn}"}, {"key": "other"}], status=status)
        draws = 0
        if status == "running":
            draws = 5 - turn
            for number in range(draws):
                asked = wire.ask(key, Idempotency_Key=f"same {number}")
                assert asked["draw"] == number + 1
                wire.tell(key, asked["id"], 1)
            assert f"of-{turn}" in api.get(f"{path}/charts/means.svg?version=1").text
        assert wire.send("GET", f"{path}/arms/of-{turn}").status == 200
        look = api.get(f"{path}/recommendation")
        assert look.json()["draws"] == draws
        assert [arm["arm"] for arm in look.json()["arms"]] == [f"of-{turn}", "other"]
        assert [len(point["arms"]) for point in wire.send("GET", f"{path}/history").body["points"]][-1] == 2
        assert wire.send("GET", f"{path}/assignments").body["assignments"][draws:] == []
        (row,) = wire.send("GET", f"/dashboard/experiments?text={key}&page=1").body["experiments"]
        assert (row["key"], row["draws"]) == (key, draws)
        assert api.get(f"{path}/recommendation", headers={"If-None-Match": look.headers["ETag"]}).status_code == 304
        if status == "running":
            wire.send("POST", f"{path}/conclude", {"arm": "other"})
            wire.send("POST", f"{path}/archive")
        assert _delete(wire, key).status == 204
        assert api.get(f"{path}/recommendation", headers={"If-None-Match": look.headers["ETag"]}).status_code == 404
        time.sleep(0.6)  # the dashboard's list is at most half a second old


def test_no_id_is_given_twice(wire: JsonClient, rows: Rows, key: str) -> None:
    """Not even that of the newest experiment, once its last row is gone: nothing remembered of it can fit another one."""
    seen = set()
    for _ in range(3):
        wire.create(key, arms=arms(2), status="draft")
        experiment = _id_of(rows, key)
        seen.add(experiment)
        _delete(wire, key)
        _wait_until_gone(rows, experiment)
    assert len(seen) == 3


def test_no_route_can_name_what_is_on_its_way_out(wire: JsonClient, rows: Rows, key: str) -> None:
    """Its row has a key that no path can hold."""
    wire.create(key, arms=arms(2), status="draft")
    experiment = _id_of(rows, key)
    _delete(wire, key)
    for name in (f"{experiment}%2Fdeleted", f"{experiment}/deleted", f"{experiment}%252Fdeleted"):
        for method, route in (("GET", ""), ("GET", "/recommendation"), ("POST", "/start"), ("POST", "/reopen")):
            assert wire.send(method, f"/v1/experiments/{name}{route}").status == 404
        assert wire.send("DELETE", f"/v1/experiments/{name}?confirm={name}").status in (404, 422)


def test_the_log_of_the_instance_says_what_was_deleted(wire: JsonClient, key: str) -> None:
    """Newest first, page by page; refused deletions are not in it."""
    for turn in range(3):
        wire.create(f"{key}-{turn}", name=f"Number {turn}", arms=arms(2), owner="ann", status="draft" if turn else "running")
    created = wire.send("GET", f"/v1/experiments/{key}-0").body["created_at"]
    wire.ask(f"{key}-0")
    _delete(wire, f"{key}-1", "yes")
    _delete(wire, f"{key}-0")
    _archive(wire, f"{key}-0")
    for turn in range(3):
        assert _delete(wire, f"{key}-{turn}").status == 204
    first = wire.send("GET", "/v1/log?page_size=2").body
    second = wire.send("GET", f"/v1/log?page_size=1&page_token={first['next_page_token']}").body
    entries = [*first["entries"], *second["entries"]]
    assert [one["details"]["experiment"] for one in entries] == [f"{key}-2", f"{key}-1", f"{key}-0"]
    assert [one["id"] for one in entries] == sorted((one["id"] for one in entries), reverse=True)
    last = entries[-1]
    assert abs(datetime.now(UTC) - datetime.fromisoformat(last["at"])) < timedelta(minutes=1)
    assert (last["kind"], last["details"]) == (
        "experiment_deleted",
        {
            "experiment": f"{key}-0",
            "name": "Number 0",
            "owner": "ann",
            "status": "archived",
            "created_at": created,
            "draws": 1,
            "version": 4,
        },
    )
    assert wire.send("GET", "/v1/log?page_size=0").status == 422


def test_a_list_goes_on_behind_a_deleted_experiment(wire: JsonClient, key: str) -> None:
    """By time it does; by key the page has lost its place, and says so instead of ending early."""
    for letter in "abcd":
        wire.create(f"{key}-{letter}", arms=arms(2), tags=[key], status="draft")
    query = f"/v1/experiments?tag={key}&page_size=2"
    tokens = {
        sort: wire.send("GET", f"{query}&sort={sort}").body["next_page_token"] for sort in ("-created_at", "created_at", "key")
    }
    assert _delete(wire, f"{key}-b").status == 204
    assert _delete(wire, f"{key}-c").status == 204
    for sort, rest in (("-created_at", ["a"]), ("created_at", ["d"])):
        page = wire.send("GET", f"{query}&sort={sort}&page_token={tokens[sort]}").body
        assert [one["key"] for one in page["experiments"]] == [f"{key}-{letter}" for letter in rest]
    lost = wire.send("GET", f"{query}&sort=key&page_token={tokens['key']}")
    assert (lost.status, lost.body["errors"][0]["pointer"]) == (422, "/query/page_token")


def test_a_retry_of_the_creation_does_not_bring_it_back(wire: JsonClient, key: str) -> None:
    """Its idempotency key still gives the first answer; a duplicate's goes with the experiment that it was made of."""
    made = {"key": key, "arms": arms(2), "status": "draft"}
    first = wire.send("POST", "/v1/experiments", made, Idempotency_Key=f"create {key}")
    _delete(wire, key)
    again = wire.send("POST", "/v1/experiments", made, Idempotency_Key=f"create {key}")
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (201, first.body, "true")
    assert wire.send("GET", f"/v1/experiments/{key}").status == 404
    assert wire.send("POST", "/v1/experiments", made).status == 201
