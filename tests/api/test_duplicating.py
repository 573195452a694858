"""Duplicate: a draft with the same settings and arms, a seed of its own, and nothing of the data."""

from __future__ import annotations

from typing import Any

import httpx

from testing.json_client import JsonClient, Reply, arms


def _duplicate(wire: JsonClient, source: str, key: str, **headers: str) -> Reply:
    return wire.send("POST", f"/v1/experiments/{source}/duplicate", {"key": key}, **headers)


def _rich(wire: JsonClient, key: str) -> Any:  # noqa: ANN401 - any JSON
    """An experiment with something in every setting, an arm that was added and one that was disabled, and some data."""
    path = f"/v1/experiments/{key}"
    wire.create(
        key,
        name="All of it",
        description="Every setting has something in it.",
        arms=[{"key": "a", "name": "Ay", "value": {"x": [1, None]}, "min_share": 0.25}, {"key": "b"}],
        policy={"kind": "almost_tracking", "batch_size": 4, "sharpness": 1.5, "guard": 0.5, "seed": 7},
        reward={"kind": "bounded", "min": -1, "max": 3, "goal": "minimize"},
        expiry={"after_seconds": 60, "reward": 2},
        sticky=True,
        confidence=0.9,
        conclude_when={"decided": True, "min_observations": 10},
        worthwhile=0.5,
        tags=["shop", "checkout"],
        owner="ann",
    )
    wire.send("POST", f"{path}/arms", {"key": "c", "min_share": 0.1})
    wire.send("PATCH", f"{path}/arms/b", {"status": "disabled"})
    wire.tell(key, wire.ask(key, "someone")["id"], 1)
    return wire.send("GET", path).body


def test_a_duplicate_has_the_settings_and_arms_and_a_seed_of_its_own(wire: JsonClient, key: str) -> None:
    """Settings, tags, owner, floors, values and disabled arms come along; seed, status, version and time are its own."""
    source, name = _rich(wire, key), f"{key}-again"
    made = _duplicate(wire, key, name)
    assert (made.status, made.headers["Location"]) == (201, f"/v1/experiments/{name}")
    assert made.body == wire.send("GET", f"/v1/experiments/{name}").body
    own = {field: made.body[field] for field in ("key", "status", "version", "created_at")}
    assert (own["key"], own["status"], own["version"]) == (name, "draft", 1)
    assert own["created_at"] > source["created_at"]
    assert made.body["policy"]["seed"] != source["policy"]["seed"]
    assert made.body == source | own | {"policy": source["policy"] | {"seed": made.body["policy"]["seed"]}}
    assert [arm["status"] for arm in made.body["arms"]] == ["active", "disabled", "active"]
    look = wire.send("GET", f"/v1/experiments/{name}/recommendation").body
    assert (look["draws"], look["observations"], look["version"]) == (0, 0, 1)
    wire.send("POST", f"/v1/experiments/{name}/start")
    assert wire.ask(name, "someone")["draw"] == 1


def test_the_log_says_what_it_is_a_duplicate_of(wire: JsonClient, experiment: str, key: str) -> None:
    """In the event of its creation, which otherwise is that of any experiment; the source knows nothing of it."""
    before = wire.send("GET", f"/v1/experiments/{experiment}").body
    _duplicate(wire, experiment, f"{key}-b")
    (created,) = wire.send("GET", f"/v1/experiments/{key}-b/events").body["events"]
    assert (created["kind"], created["details"]["duplicated_from"]) == ("created", experiment)
    assert created["details"]["experiment"]["status"] == "draft"
    assert wire.send("GET", f"/v1/experiments/{experiment}").body == before


def test_a_name_that_was_only_the_key_follows_the_key(wire: JsonClient, experiment: str, key: str) -> None:
    """A given name is kept; one that was made of the key would name another experiment."""
    assert _duplicate(wire, experiment, f"{key}-b").body["name"] == f"{key}-b"
    wire.send("PATCH", f"/v1/experiments/{experiment}", {"name": "Given"})
    assert _duplicate(wire, experiment, f"{key}-c").body["name"] == "Given"


def test_a_concluded_experiment_gives_a_draft_that_serves_nothing(wire: JsonClient, experiment: str, key: str) -> None:
    """From any status: draft, with no concluded arm; and it can be started like any draft."""
    wire.send("POST", f"/v1/experiments/{experiment}/conclude", {"arm": "arm-1"})
    wire.send("POST", f"/v1/experiments/{experiment}/archive")
    made = _duplicate(wire, experiment, f"{key}-b").body
    assert (made["status"], made["concluded_arm"]) == ("draft", None)
    assert wire.send("POST", f"/v1/experiments/{key}-b/start").body["status"] == "running"


def test_duplicates_that_cannot_be(wire: JsonClient, api: httpx.Client, experiment: str, key: str) -> None:
    """A taken key is 409, an unknown source 404, a bad key or another field 422; none leaves anything behind."""
    for taken in (experiment,):
        refused = _duplicate(wire, experiment, taken)
        assert (refused.status, refused.body["code"]) == (409, "experiment_exists")
    unknown = _duplicate(wire, f"{key}-nobody", f"{key}-b")
    assert (unknown.status, unknown.body["code"]) == (404, "experiment_not_found")
    for body in ({"key": "Not A Key"}, {}, {"key": f"{key}-b", "name": "x"}):
        answer = api.post(f"/v1/experiments/{experiment}/duplicate", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
    assert wire.send("GET", f"/v1/experiments/{key}-b").status == 404


def test_a_duplicate_is_made_once_per_idempotency_key(wire: JsonClient, key: str) -> None:
    """The same key and body give the first answer; another body is refused; another source is another request."""
    for source in (f"{key}-1", f"{key}-2"):
        wire.create(source, arms=arms(2))
    first = _duplicate(wire, f"{key}-1", f"{key}-a", Idempotency_Key="once")
    again = _duplicate(wire, f"{key}-1", f"{key}-a", Idempotency_Key="once")
    assert (first.status, again.status, again.body) == (201, 201, first.body)
    assert (first.headers["Idempotency-Replayed"], again.headers["Idempotency-Replayed"]) == (None, "true")
    assert again.headers["Location"] == f"/v1/experiments/{key}-a"
    reused = _duplicate(wire, f"{key}-1", f"{key}-b", Idempotency_Key="once")
    assert (reused.status, reused.body["code"]) == (422, "idempotency_key_reused")
    assert _duplicate(wire, f"{key}-2", f"{key}-b", Idempotency_Key="once").status == 201
