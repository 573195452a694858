"""Ask: single and batch, sticky units, idempotency keys, reading them back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from testing.json_client import JsonClient, arms
from testing.server import Server


@pytest.fixture(scope="module", params=[False, True], ids=["hot", "framework"])
def wire(server: Server, request: pytest.FixtureRequest) -> Iterator[JsonClient]:
    """Both ways to the same use cases: the short one, and the framework."""
    with JsonClient(server.url, by_framework=request.param) as connection:
        yield connection


def test_an_assignment(wire: JsonClient, key: str) -> None:
    """The first ask draws the first arm, with the fields of the contract."""
    wire.create(key, arms=arms(2), expiry={"after_seconds": 3600, "reward": None})
    reply = wire.send("POST", f"/v1/experiments/{key}/assignments", {"unit": "user-42"})
    asked = reply.body
    assert reply.status == 201
    assert asked["id"].startswith("asg_")
    expires = datetime.fromisoformat(asked["expires_at"]) - datetime.fromisoformat(asked["created_at"])
    assert expires == timedelta(hours=1)
    shown = {name: asked[name] for name in asked if name not in ("id", "created_at", "expires_at")}
    assert shown == {
        "experiment": key,
        "arm": "arm-0",
        "value": 0,
        "unit": "user-42",
        "draw": 1,
        "reason": "warmup",
        "status": "pending",
        "reward": None,
        "rewarded_at": None,
    }
    read = wire.send("GET", f"/v1/experiments/{key}/assignments/{asked['id']}")
    assert (read.status, read.body) == (200, asked)


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        ("simple_tracking", ["warmup", "warmup", "track", "track", "track"]),
        ("almost_tracking", ["batch"] * 5),
        ("uniform", ["uniform"] * 5),
    ],
)
def test_reasons(wire: JsonClient, key: str, policy: str, reasons: list[str]) -> None:
    """Each policy says why it drew."""
    wire.create(key, arms=arms(2), policy={"kind": policy})
    assert [wire.ask(key)["reason"] for _ in range(5)] == reasons


def test_an_empty_body_is_nobody(wire: JsonClient, experiment: str) -> None:
    """The unit is optional, and so is the body."""
    for body in (None, {}, {"unit": None}):
        reply = wire.send("POST", f"/v1/experiments/{experiment}/assignments", body)
        assert (reply.status, reply.body["unit"]) == (201, None)


def test_units_do_not_stick_unless_asked_to(wire: JsonClient, experiment: str) -> None:
    """Where not sticky each ask of a unit is a draw."""
    assert [wire.ask(experiment, "same")["draw"] for _ in range(3)] == [1, 2, 3]


def test_a_sticky_unit_keeps_its_assignment(wire: JsonClient, key: str) -> None:
    """Asked again it gets 200, the reason `sticky` and no new draw, whatever the assignment's status; others draw."""
    wire.create(key, arms=arms(3), sticky=True)
    first = wire.ask(key, "a")
    again = wire.send("POST", f"/v1/experiments/{key}/assignments", {"unit": "a"})
    assert (again.status, again.body) == (200, first | {"reason": "sticky"})
    told = wire.tell(key, first["id"], 1)
    assert wire.ask(key, "a") == told | {"reason": "sticky"}
    wire.send("DELETE", f"/v1/experiments/{key}/assignments/{first['id']}/reward")
    assert (wire.ask(key, "a")["status"], wire.ask(key, "b")["draw"]) == ("voided", 2)


def test_a_sticky_unit_moves_when_its_arm_is_disabled(wire: JsonClient, key: str) -> None:
    """It gets a new draw, which stays its assignment even when the old arm returns."""
    wire.create(key, arms=arms(2), sticky=True)
    first = wire.ask(key, "a")
    wire.send("PATCH", f"/v1/experiments/{key}/arms/{first['arm']}", {"status": "disabled"})
    second = wire.ask(key, "a")
    assert (second["draw"], second["arm"], second["reason"]) == (2, "arm-1", "warmup")
    wire.send("PATCH", f"/v1/experiments/{key}/arms/{first['arm']}", {"status": "active"})
    assert wire.ask(key, "a") == second | {"reason": "sticky"}


def test_a_sticky_experiment_needs_units(wire: JsonClient, key: str) -> None:
    """Without a unit, or with a count, the ask is 422 unit_required."""
    wire.create(key, arms=arms(2), sticky=True)
    for path, body in (("assignments", {}), ("assignments/batch", {"count": 2})):
        refused = wire.send("POST", f"/v1/experiments/{key}/{path}", body)
        assert (refused.status, refused.body["code"]) == (422, "unit_required")


@pytest.mark.parametrize(("status", "steps"), [("draft", []), ("paused", ["start", "pause"])])
def test_only_a_running_experiment_draws(wire: JsonClient, key: str, status: str, steps: list[str]) -> None:
    """Draft and paused experiments answer 409 experiment_not_running."""
    wire.create(key, arms=arms(2), status="draft")
    for step in steps:
        wire.send("POST", f"/v1/experiments/{key}/{step}")
    for path, body in (("assignments", {}), ("assignments/batch", {"count": 2})):
        refused = wire.send("POST", f"/v1/experiments/{key}/{path}", body)
        assert (refused.status, refused.body["code"]) == (409, "experiment_not_running"), status


def test_a_batch_draws_in_order(wire: JsonClient, experiment: str) -> None:
    """A batch is so many draws, numbered on; units come back in their order, repeated ones as draws of their own."""
    wire.ask(experiment)
    path = f"/v1/experiments/{experiment}/assignments/batch"
    counted = wire.send("POST", path, {"count": 3})
    assert (counted.status, [one["draw"] for one in counted.body["assignments"]]) == (201, [2, 3, 4])
    units = ["x", "y", "x"]
    named = wire.send("POST", path, {"units": units}).body["assignments"]
    assert [(one["unit"], one["draw"]) for one in named] == [("x", 5), ("y", 6), ("x", 7)]


def test_a_sticky_batch_shares_assignments(wire: JsonClient, key: str) -> None:
    """Repeated units share one assignment; known units come back with the reason `sticky`."""
    wire.create(key, arms=arms(2), sticky=True)
    known = wire.ask(key, "known")
    answered = wire.send("POST", f"/v1/experiments/{key}/assignments/batch", {"units": ["new", "known", "new"]})
    new, old, again = answered.body["assignments"]
    assert (answered.status, new["draw"], old) == (201, 2, known | {"reason": "sticky"})
    assert again == new | {"reason": "sticky"}


def test_the_largest_batch(wire: JsonClient, experiment: str) -> None:
    """Ten thousand draws in one request are numbered without a gap."""
    drawn = wire.send("POST", f"/v1/experiments/{experiment}/assignments/batch", {"count": 10_000}).body["assignments"]
    assert [one["draw"] for one in drawn] == list(range(1, 10_001))


def test_an_ask_is_idempotent(wire: JsonClient, experiment: str) -> None:
    """The key gives the first answer: its status, its arm's value as it was, pending although it was rewarded since."""
    path = f"/v1/experiments/{experiment}/assignments"
    first = wire.send("POST", path, {"unit": "u"}, idempotency_key="key 1")
    wire.tell(experiment, first.body["id"], 1)
    for value in ("later", "latest"):
        wire.send("PATCH", f"/v1/experiments/{experiment}/arms/{first.body['arm']}", {"value": value})
    wire.send("PATCH", f"/v1/experiments/{experiment}/arms/{first.body['arm']}", {"status": "disabled"})
    wire.send("POST", f"/v1/experiments/{experiment}/pause")
    again = wire.send("POST", path, {"unit": "u"}, idempotency_key="key 1")
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")
    other = wire.send("POST", path, {"unit": "v"}, idempotency_key="key 1")
    assert (other.status, other.body["code"]) == (422, "idempotency_key_reused")


def test_a_batch_is_idempotent(wire: JsonClient, experiment: str) -> None:
    """The whole first answer comes back, whatever became of its draws and arms since, and nothing more is drawn."""
    path = f"/v1/experiments/{experiment}/assignments/batch"
    first = wire.send("POST", path, {"count": 5}, idempotency_key="batch")
    wire.tell(experiment, first.body["assignments"][0]["id"], 1)
    for arm in {one["arm"] for one in first.body["assignments"]}:
        wire.send("PATCH", f"/v1/experiments/{experiment}/arms/{arm}", {"value": "later"})
    for step in ("pause", "resume"):  # whether it would be answered now or not
        again = wire.send("POST", path, {"count": 5}, idempotency_key="batch")
        assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")
        wire.send("POST", f"/v1/experiments/{experiment}/{step}")
    assert wire.send("POST", path, {"count": 6}, idempotency_key="batch").body["code"] == "idempotency_key_reused"
    assert wire.ask(experiment)["draw"] == 6


def test_a_sticky_batch_is_idempotent(wire: JsonClient, key: str) -> None:
    """Units that had an assignment before come back as they were at the first time."""
    wire.create(key, arms=arms(2), sticky=True)
    known = wire.ask(key, "u1")
    path, units = f"/v1/experiments/{key}/assignments/batch", {"units": ["u1", "u2", "u2"]}
    first = wire.send("POST", path, units, idempotency_key="batch")
    wire.tell(key, known["id"], 1)
    again = wire.send("POST", path, units, idempotency_key="batch")
    assert [one["reason"] for one in first.body["assignments"]][::2] == ["sticky", "sticky"]
    assert (again.body, again.headers["idempotency-replayed"]) == (first.body, "true")


def test_keys_of_two_experiments_are_two_keys(wire: JsonClient, experiment: str, key: str) -> None:
    """An ask's idempotency key belongs to its experiment."""
    wire.create(f"{key}-other", arms=arms(2))
    mine = wire.ask(experiment, "u", idempotency_key="shared")
    theirs = wire.ask(f"{key}-other", "v", idempotency_key="shared")
    assert (mine["experiment"], theirs["experiment"]) == (experiment, f"{key}-other")


def test_the_list_filters_and_pages(wire: JsonClient, experiment: str) -> None:
    """Assignments are listed newest first, by status, arm and unit, page by page."""
    path = f"/v1/experiments/{experiment}/assignments"
    asked = [wire.ask(experiment, f"u{number % 2}") for number in range(6)]
    wire.tell(experiment, asked[0]["id"], 1)

    def listed(query: str) -> list[int]:
        return [one["draw"] for one in wire.send("GET", f"{path}?{query}").body["assignments"]]

    assert listed("status=rewarded") == [1]
    assert listed("status=pending") == [6, 5, 4, 3, 2]
    assert listed("unit=u0") == [5, 3, 1]
    assert listed("arm=arm-1") == [one["draw"] for one in asked[::-1] if one["arm"] == "arm-1"]
    assert listed("unit=u0&status=pending") == [5, 3]
    page = wire.send("GET", f"{path}?page_size=4").body
    rest = wire.send("GET", f"{path}?page_size=4&page_token={page['next_page_token']}").body
    assert [one["draw"] for one in page["assignments"] + rest["assignments"]] == [6, 5, 4, 3, 2, 1]
    assert rest["next_page_token"] is None


def test_voided_observations_are_no_assignments(wire: JsonClient, experiment: str) -> None:
    """What is voided without a draw is not listed among the voided assignments, nor does it hide them."""
    path = f"/v1/experiments/{experiment}"
    told = [{"id": f"seen-{number}", "arm": "arm-0", "reward": 1} for number in range(30)]
    assert wire.send("POST", f"{path}/observations", {"observations": told}).status == 200
    for one in told:
        assert wire.send("DELETE", f"{path}/observations/{one['id']}").status == 200
    voided = wire.ask(experiment)["id"]
    assert wire.send("DELETE", f"{path}/assignments/{voided}/reward").status == 200
    page = wire.send("GET", f"{path}/assignments?status=voided").body
    assert [one["id"] for one in page["assignments"]] == [voided]
    assert page["next_page_token"] is None
