"""Arms: add, change, disable."""

from __future__ import annotations

import pytest

from testing.json_client import JsonClient, arms


def test_an_added_arm_is_drawn_next(wire: JsonClient, experiment: str) -> None:
    """A new arm joins at the end, active, and is the next draw."""
    for _ in range(4):
        wire.tell(experiment, wire.ask(experiment)["id"], 1)
    added = wire.send("POST", f"/v1/experiments/{experiment}/arms", {"key": "new", "value": "n", "min_share": 0.1})
    assert (added.status, added.body) == (
        201,
        {"key": "new", "name": "new", "value": "n", "min_share": 0.1, "status": "active"},
    )
    asked = wire.ask(experiment)
    assert (asked["arm"], asked["reason"]) == ("new", "warmup")
    assert [arm["key"] for arm in wire.send("GET", f"/v1/experiments/{experiment}").body["arms"]] == ["arm-0", "arm-1", "new"]


def test_adding_is_idempotent(wire: JsonClient, experiment: str) -> None:
    """The same key and body add one arm; a taken arm key without it is 409."""
    path, body = f"/v1/experiments/{experiment}/arms", {"key": "new"}
    first = wire.send("POST", path, body, idempotency_key="once")
    again = wire.send("POST", path, body, idempotency_key="once")
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")
    taken = wire.send("POST", path, body)
    assert (taken.status, taken.body["code"]) == (409, "arm_exists")


def test_a_disabled_arm_is_never_drawn_nor_recommended(wire: JsonClient, key: str) -> None:
    """Its data stays and late rewards still count; enabled again it returns."""
    wire.create(key, arms=arms(3))
    asked = [wire.ask(key) for _ in range(3)]
    wire.tell(key, asked[1]["id"], 0)
    path = f"/v1/experiments/{key}"
    assert wire.send("PATCH", f"{path}/arms/arm-2", {"status": "disabled"}).body["status"] == "disabled"
    wire.tell(key, asked[2]["id"], 1)
    drawn = wire.send("POST", f"{path}/assignments/batch", {"count": 50}).body["assignments"]
    assert {one["arm"] for one in drawn} == {"arm-0", "arm-1"}
    look = wire.send("GET", f"{path}/recommendation").body
    assert look["arm"] == "arm-1"
    struck = look["arms"][2]
    assert (struck["status"], struck["observations"], struck["mean"], struck["target_share"]) == ("disabled", 1, 1, 0)
    wire.send("PATCH", f"{path}/arms/arm-2", {"status": "active"})
    assert wire.send("GET", f"{path}/recommendation").body["arm"] == "arm-2"


def test_one_active_arm_must_remain(wire: JsonClient, experiment: str) -> None:
    """The last active arm cannot be disabled."""
    path = f"/v1/experiments/{experiment}/arms"
    assert wire.send("PATCH", f"{path}/arm-0", {"status": "disabled"}).status == 200
    last = wire.send("PATCH", f"{path}/arm-1", {"status": "disabled"})
    assert (last.status, last.body["code"]) == (409, "last_active_arm")
    assert wire.ask(experiment)["arm"] == "arm-1"


@pytest.mark.parametrize(
    ("value", "other"),
    [(1, True), (0, False), (1, 1.0), ({"on": 1}, {"on": True}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ("x", None)],
)
def test_values_are_handed_out_untouched(wire: JsonClient, key: str, value: object, other: object) -> None:
    """A value that is equal for Python but not as JSON is another value."""
    wire.create(key, arms=[{"key": "a", "value": value}, {"key": "b"}])
    assert repr(wire.ask(key)["value"]) == repr(value)
    changed = wire.send("PATCH", f"/v1/experiments/{key}/arms/a", {"value": other})
    read = wire.send("GET", f"/v1/experiments/{key}").body["arms"][0]
    assert [repr(changed.body["value"]), repr(read["value"])] == [repr(other)] * 2


def test_values_of_any_json_come_back(wire: JsonClient, key: str) -> None:
    """Numbers beyond 64 bits, text beyond ASCII and nested values are kept as they are."""
    values = [10**40, -(2**63) - 1, 0.1, 1e-320, "😀 é \u2028", [[[]], {}], {"": {"~/": None}}]
    wire.create(key, arms=[{"key": f"a{index}", "value": value} for index, value in enumerate(values)])
    drawn = wire.send("POST", f"/v1/experiments/{key}/assignments/batch", {"count": len(values)}).body["assignments"]
    assert [repr(one["value"]) for one in drawn] == [repr(value) for value in values]


def test_floors_hold_for_the_active_arms_together(wire: JsonClient, key: str) -> None:
    """Adding, patching or enabling an arm may not promise more than everything; what is disabled is promised nothing."""
    wire.create(key, arms=[{"key": "a", "min_share": 0.6}, {"key": "b", "min_share": 0.4}])
    path = f"/v1/experiments/{key}/arms"
    assert wire.send("POST", path, {"key": "c", "min_share": 0.1}).status == 422
    assert wire.send("PATCH", f"{path}/a", {"min_share": 0.7}).status == 422
    assert wire.send("PATCH", f"{path}/b", {"status": "disabled"}).status == 200
    assert wire.send("PATCH", f"{path}/a", {"min_share": 0.7}).status == 200
    assert wire.send("POST", path, {"key": "c", "min_share": 0.3}).status == 201
    assert wire.send("PATCH", f"{path}/b", {"min_share": 1.0}).status == 200
    refused = wire.send("PATCH", f"{path}/b", {"status": "active"})
    sentence = "The floors (min_share) of all active arms together must not exceed 1."
    assert (refused.status, refused.body["code"], refused.body["detail"]) == (422, "validation_failed", sentence)
    assert refused.body["errors"] == [{"pointer": "/status", "detail": sentence}]
    assert wire.send("PATCH", f"{path}/b", {"status": "active", "min_share": 0.0}).status == 200


def test_a_floor_is_kept(wire: JsonClient, key: str) -> None:
    """The draws follow w' = f + (1 - sum f) w: an arm with a floor of 80% gets at least that."""
    wire.create(key, arms=[{"key": "a"}, {"key": "b", "min_share": 0.8}, {"key": "c"}], policy={"kind": "uniform"})
    drawn = wire.send("POST", f"/v1/experiments/{key}/assignments/batch", {"count": 300}).body["assignments"]
    assert 0.8 * 300 <= sum(one["arm"] == "b" for one in drawn) <= 0.88 * 300
    target = wire.send("GET", f"/v1/experiments/{key}/recommendation").body["arms"][1]["target_share"]
    assert target == pytest.approx(0.8 + 0.2 / 3, abs=1e-12)


def test_nothing_changes_in_an_archived_experiment(wire: JsonClient, experiment: str) -> None:
    """Archived means frozen: no patch, no arm, no ask, no tell."""
    asked = wire.ask(experiment)
    path = f"/v1/experiments/{experiment}"
    wire.send("POST", f"{path}/conclude", {"arm": "arm-0"})
    wire.send("POST", f"{path}/archive")
    before = wire.send("GET", path).body
    for method, where, body in (
        ("PATCH", path, {"name": "x"}),
        ("PATCH", f"{path}/arms/arm-0", {"name": "x"}),
        ("POST", f"{path}/arms", {"key": "x"}),
        ("POST", f"{path}/assignments", {}),
        ("POST", f"{path}/assignments/batch", {"count": 1}),
        ("POST", f"{path}/assignments/{asked['id']}/reward", {"reward": 1}),
        ("PUT", f"{path}/assignments/{asked['id']}/reward", {"reward": 1}),
        ("DELETE", f"{path}/assignments/{asked['id']}/reward", None),
        ("POST", f"{path}/rewards", {"rewards": [{"assignment": asked["id"], "reward": 1}]}),
        ("POST", f"{path}/observations", {"observations": [{"arm": "arm-0", "reward": 1}]}),
    ):
        assert wire.send(method, where, body).status == 409, (method, where)
    assert wire.send("GET", path).body == before
