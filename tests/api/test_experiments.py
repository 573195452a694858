"""Experiments: create, read, list, change, and lead through their life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from service.domain import Move
from service.policy.automatic import AutomaticPolicy
from testing.json_client import JsonClient, arms


def test_defaults(wire: JsonClient, key: str) -> None:
    """What is left out has the contract's defaults; the random seed is always returned."""
    created = wire.create(key, arms=[{"key": "a"}, {"key": "b", "name": "Bee", "value": {"x": [1]}, "min_share": 0.25}])
    seed = created["policy"].pop("seed")
    assert isinstance(seed, int)
    assert 0 <= seed < 2**53
    age = datetime.now(UTC) - datetime.fromisoformat(created.pop("created_at"))
    assert abs(age) < timedelta(minutes=1)
    assert created == {
        "key": key,
        "name": key,
        "description": "",
        "status": "running",
        "arms": [
            {"key": "a", "name": "a", "value": None, "min_share": 0, "status": "active"},
            {"key": "b", "name": "Bee", "value": {"x": [1]}, "min_share": 0.25, "status": "active"},
        ],
        "policy": {"kind": "simple_tracking", "sharpness": 2.0, "guard": 0.5, "ties": "limit"},
        "reward": {"kind": "binary", "goal": "maximize"},
        "expiry": None,
        "sticky": False,
        "confidence": 0.95,
        "conclude_when": None,
        "tags": [],
        "owner": None,
        "worthwhile": None,
        "control": None,
        "ofrep": {"bulk": False},
        "concluded_arm": None,
        "pruned_at": None,
        "version": 1,
    }


def test_everything_given_is_kept(wire: JsonClient, key: str) -> None:
    """Every field comes back as it was sent, at once and when read again."""
    sent = {
        "name": "Größe ☕",
        "description": "Long\ntext",
        "policy": {
            "kind": "almost_tracking",
            "seed": 2**53 - 1,
            "sharpness": 1.5,
            "guard": 0.25,
            "ties": "paper",
            "batch_size": 9,
            "sufficiency": 0.5,
            "sufficiency_by": "realised",
        },
        "reward": {"kind": "bounded", "goal": "minimize", "min": -1.5, "max": 4},
        "expiry": {"after_seconds": 0.5, "reward": 4},
        "sticky": True,
        "confidence": 0.9,
        "conclude_when": {"separated": True, "min_observations": 1000},
        "tags": ["checkout", "q3.2026"],
        "owner": "Zoë, growth",
        "status": "draft",
    }
    created = wire.create(key, arms=arms(3), **sent)
    assert {name: created[name] for name in sent} == sent
    read = wire.send("GET", f"/v1/experiments/{key}")
    assert (read.status, read.body) == (200, created)


def test_a_taken_key_is_a_conflict(wire: JsonClient, experiment: str) -> None:
    """A duplicate key is 409 experiment_exists."""
    again = wire.send("POST", "/v1/experiments", {"key": experiment, "arms": arms(2)})
    assert (again.status, again.body["code"]) == (409, "experiment_exists")


def test_creating_is_idempotent(wire: JsonClient, key: str) -> None:
    """The same key and body give the first answer again, however much happened since; another body is refused."""
    body = {"key": key, "arms": arms(2)}
    first = wire.send("POST", "/v1/experiments", body, idempotency_key=f"create {key}")
    wire.send("PATCH", f"/v1/experiments/{key}", {"name": "changed"})
    again = wire.send("POST", "/v1/experiments", body, idempotency_key=f"create {key}")
    assert (again.status, again.body, again.headers["location"]) == (201, first.body, f"/v1/experiments/{key}")
    assert (first.headers["idempotency-replayed"], again.headers["idempotency-replayed"]) == (None, "true")
    other = wire.send("POST", "/v1/experiments", body | {"name": "x"}, idempotency_key=f"create {key}")
    assert (other.status, other.body["code"]) == (422, "idempotency_key_reused")


def test_refusals_are_not_kept(wire: JsonClient, key: str) -> None:
    """A key whose request was refused may be used again with a better body."""
    refused = wire.send("POST", "/v1/experiments", {"key": key, "arms": arms(1)}, idempotency_key=f"retry {key}")
    mended = wire.send("POST", "/v1/experiments", {"key": key, "arms": arms(2)}, idempotency_key=f"retry {key}")
    assert (refused.status, mended.status) == (422, 201)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "n", "description": "d", "confidence": 0.5},
        {"expiry": {"after_seconds": 60, "reward": 0}, "conclude_when": {"separated": True, "min_observations": 5}},
        {"expiry": None, "conclude_when": None},
    ],
)
def test_a_patch_changes_what_it_names(wire: JsonClient, key: str, fields: dict[str, object]) -> None:
    """Fields of a running experiment change, the others stay, and the version goes on by one."""
    before = wire.create(key, arms=arms(2), expiry={"after_seconds": 9, "reward": None})
    patched = wire.send("PATCH", f"/v1/experiments/{key}", fields)
    assert (patched.status, patched.body) == (200, before | fields | {"version": 2})


def test_a_patch_of_nothing_leaves_no_trace(wire: JsonClient, experiment: str) -> None:
    """An empty patch, or one with the present values, is answered and changes nothing."""
    before = wire.send("GET", f"/v1/experiments/{experiment}").body
    for fields in ({}, {"name": experiment, "confidence": 0.95}):
        assert wire.send("PATCH", f"/v1/experiments/{experiment}", fields).body == before


@pytest.mark.parametrize(
    "fields",
    [{"sticky": True}, {"policy": {"kind": "uniform", "seed": 1}}, {"reward": {"kind": "real", "goal": "minimize"}}],
    ids=lambda fields: next(iter(fields)),
)
def test_some_fields_change_in_a_draft_only(wire: JsonClient, key: str, fields: dict[str, object]) -> None:
    """Stickiness, policy and reward are fixed once the experiment has started."""
    wire.create(key, arms=arms(2), status="draft")
    patched = wire.send("PATCH", f"/v1/experiments/{key}", fields)
    assert (patched.status, patched.body | fields) == (200, patched.body)
    wire.send("POST", f"/v1/experiments/{key}/start")
    late = wire.send("PATCH", f"/v1/experiments/{key}", fields)
    assert (late.status, late.headers["content-type"]) == (409, "application/problem+json")


def test_a_patch_may_not_contradict_the_rest(wire: JsonClient, key: str) -> None:
    """An expiry reward that the reward kind forbids is refused, whichever of the two is patched."""
    wire.create(key, arms=arms(2), status="draft", reward={"kind": "real"}, expiry={"after_seconds": 60, "reward": 7})
    refused = wire.send("PATCH", f"/v1/experiments/{key}", {"reward": {"kind": "binary"}})
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, "/expiry/reward")


def test_a_patch_after_an_added_arm_is_not_held_to_the_batch_size(wire: JsonClient, key: str) -> None:
    """A batch size that was large enough at the start does not block later patches: batches grow by themselves."""
    wire.create(key, arms=arms(2), policy={"kind": "almost_tracking", "batch_size": 4})
    wire.send("POST", f"/v1/experiments/{key}/arms", {"key": "third"})
    assert wire.send("PATCH", f"/v1/experiments/{key}", {"name": "still possible"}).status == 200


MOVES = {
    "draft": {"start": "running"},
    "running": {"pause": "paused", "conclude": "concluded"},
    "paused": {"resume": "running", "conclude": "concluded"},
    "concluded": {"reopen": "paused", "archive": "archived"},
    "archived": {},
}
# The step that led there may be taken again.
AGAIN = {"running": "start", "paused": "pause", "archived": "archive"}
WAYS: dict[str, list[str]] = {
    "draft": [],
    "running": ["start"],
    "paused": ["start", "pause"],
    "concluded": ["start", "conclude"],
    "archived": ["start", "conclude", "archive"],
}


@pytest.mark.parametrize("status", MOVES)
def test_the_moves_of_a_life(wire: JsonClient, key: str, status: str) -> None:
    """Draft -> running <-> paused <-> concluded -> archived; the last move again is 200, any other 409, and nothing changes."""
    for move in get_args(Move):
        name = f"{key}-{move}"
        wire.create(name, arms=arms(2), status="draft")
        for step in WAYS[status]:
            wire.send("POST", f"/v1/experiments/{name}/{step}", {"arm": "arm-1"} if step == "conclude" else None)
        before = wire.send("GET", f"/v1/experiments/{name}").body
        assert before["status"] == status
        moved = wire.send("POST", f"/v1/experiments/{name}/{move}", {"arm": "arm-0"} if move == "conclude" else None)
        if move in MOVES[status]:
            assert (moved.status, moved.body["status"], moved.body["version"]) == (
                200,
                MOVES[status][move],
                before["version"] + 1,
            )
        elif move == AGAIN.get(status):
            assert (moved.status, moved.body) == (200, before)
        else:
            assert (moved.status, moved.body["code"]) == (409, "illegal_transition")
            assert wire.send("GET", f"/v1/experiments/{name}").body == before


def test_concluding_takes_the_recommendation(wire: JsonClient, experiment: str) -> None:
    """Without an arm the empirically best one is served; without any reward there is none."""
    path = f"/v1/experiments/{experiment}"
    nothing = wire.send("POST", f"{path}/conclude")
    assert (nothing.status, nothing.body["code"]) == (409, "no_recommendation")
    for reward in (0, 1):
        wire.tell(experiment, wire.ask(experiment)["id"], reward)
    assert wire.send("POST", f"{path}/conclude").body["concluded_arm"] == "arm-1"
    served = wire.send("POST", f"{path}/assignments", {"unit": "u"})
    assert served.status == 200
    assert {name: served.body[name] for name in ("id", "draw", "arm", "value", "reason", "unit")} == {
        "id": None,
        "draw": None,
        "arm": "arm-1",
        "value": 1,
        "reason": "concluded",
        "unit": "u",
    }
    assert wire.send("GET", f"{path}/recommendation").body["draws"] == 2


def test_concluding_with_an_arm(wire: JsonClient, experiment: str) -> None:
    """The named arm is served, and cannot be disabled any more; an unknown one is 404."""
    path = f"/v1/experiments/{experiment}"
    unknown = wire.send("POST", f"{path}/conclude", {"arm": "nobody"})
    assert (unknown.status, unknown.body["code"]) == (404, "arm_not_found")
    assert wire.send("POST", f"{path}/conclude", {"arm": "arm-0"}).body["concluded_arm"] == "arm-0"
    disabled = wire.send("PATCH", f"{path}/arms/arm-0", {"status": "disabled"})
    assert (disabled.status, disabled.body["code"]) == (409, "arm_concluded")


def test_the_list_is_paged_newest_first(wire: JsonClient, key: str) -> None:
    """Pages follow each other without gap or repeat, however many are asked for at once."""
    made = [f"{key}-{number}" for number in range(5)]
    for name in made:
        wire.create(name, arms=arms(2))
    seen: list[str] = []
    query = "page_size=2"
    while len(seen) < 5:
        page = wire.send("GET", f"/v1/experiments?{query}").body
        assert len(page["experiments"]) == 2
        seen += [one["key"] for one in page["experiments"]]
        query = f"page_size=2&page_token={page['next_page_token']}"
    assert seen[:5] == made[::-1]
    whole = wire.send("GET", "/v1/experiments").body
    assert len(whole["experiments"]) <= 20


def test_auto_becomes_a_policy_when_the_experiment_is_created(wire: JsonClient, key: str) -> None:
    """Given or left out, it is answered as what it became, with the seed that was given."""
    created = wire.create(key, arms=arms(3), policy={"kind": "auto", "seed": 5})
    became = AutomaticPolicy(5).resolved("binary", 3)
    shown = {"kind": became.kind, "seed": 5, "sharpness": became.sharpness, "guard": became.guard, "ties": became.ties}
    assert created["policy"] == shown
    assert wire.send("GET", f"/v1/experiments/{key}").body["policy"] == shown


def test_a_draft_can_be_given_auto_and_the_papers_letter(wire: JsonClient, key: str) -> None:
    """What auto becomes follows from the rewards as they are after the same patch."""
    wire.create(key, arms=arms(3), policy={"kind": "uniform"}, status="draft")
    patch = {"policy": {"kind": "auto", "seed": 5}, "reward": {"kind": "real"}}
    patched = wire.send("PATCH", f"/v1/experiments/{key}", patch)
    became = AutomaticPolicy(5).resolved("real", 3)
    assert (patched.status, patched.body["policy"]["kind"], patched.body["policy"]["guard"]) == (200, became.kind, became.guard)
    letter = {"kind": "simple_tracking", "ties": "paper", "sharpness": 1}
    patched = wire.send("PATCH", f"/v1/experiments/{key}", {"policy": letter})
    assert {name: patched.body["policy"][name] for name in letter} == letter


def test_floors_are_kept_over_http(wire: JsonClient, key: str) -> None:
    """Almost Tracking with floors of .9, .05 and .05: after a thousand draws the shares are those, within 1%."""
    promised = {"a": 0.9, "b": 0.05, "c": 0.05}
    wire.create(
        key, arms=[{"key": name, "min_share": floor} for name, floor in promised.items()], policy={"kind": "almost_tracking"}
    )
    asked = wire.send("POST", f"/v1/experiments/{key}/assignments/batch", {"count": 1000})
    drawn = [one["arm"] for one in asked.body["assignments"]]
    for name, floor in promised.items():
        assert drawn.count(name) / 1000 >= floor - 0.01
