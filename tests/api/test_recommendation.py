"""Look: the fields of the recommendation, its ETag, and how fresh it is."""

from __future__ import annotations

import httpx
import pytest

from testing.json_client import JsonClient, arms


def told(wire: JsonClient, key: str, rewards: list[float]) -> None:
    """So many asks, each told its reward at once."""
    for reward in rewards:
        wire.tell(key, wire.ask(key)["id"], reward)


def test_before_any_reward(wire: JsonClient, experiment: str) -> None:
    """There is no arm, no mean and no gap yet; all the fields are there."""
    wire.ask(experiment)
    look = wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body
    nulls = ("arm", "value", "runner_up", "gap", "error_estimate", "concluded_arm")
    assert [look[name] for name in nulls] == [None] * 6
    assert (look["experiment"], look["status"], look["confidence"]) == (experiment, "running", 0.95)
    assert (look["draws"], look["observations"], look["pending"], look["version"]) == (1, 0, 1, 2)
    assert (look["separated"], look["drift"], look["method"]) == (False, [], "beta-binomial mixture")
    assert isinstance(look["summary"], str)
    assert isinstance(look["assumes"], list)
    assert look["as_of"].endswith("Z")
    first = look["arms"][0]
    shown = {name: first[name] for name in ("arm", "name", "status", "draws", "pending", "expired", "observations")}
    assert shown == {
        "arm": "arm-0",
        "name": "arm-0",
        "status": "active",
        "draws": 1,
        "pending": 1,
        "expired": 0,
        "observations": 0,
    }
    assert (first["mean"], first["variance"], first["share"], first["target_share"]) == (None, None, 1, 0.5)
    assert "interval" in first


def test_after_some_rewards(wire: JsonClient, key: str) -> None:
    """Mean, variance (n - 1), gap and shares are those of the rewards told."""
    wire.create(key, arms=[{"key": "a", "value": "A"}, {"key": "b", "value": "B"}], policy={"kind": "uniform"})
    told(wire, key, [0, 1, 1, 1])
    look = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert (look["arm"], look["value"], look["runner_up"], look["gap"]) == ("b", "B", "a", 0.5)
    a, b = look["arms"]
    assert (a["mean"], a["variance"], a["share"], b["mean"], b["variance"]) == (0.5, 0.5, 0.5, 1, 0)
    assert sum(arm["target_share"] for arm in look["arms"]) == pytest.approx(1)


def test_minimising_turns_the_order_around(wire: JsonClient, key: str) -> None:
    """With the goal minimize the smallest mean leads."""
    wire.create(key, arms=arms(2), reward={"kind": "real", "goal": "minimize"})
    told(wire, key, [5.5, -2.25])
    look = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert (look["arm"], look["gap"], look["arms"][1]["mean"]) == ("arm-1", 7.75, -2.25)


def test_ties_go_to_more_observations_then_position(wire: JsonClient, experiment: str) -> None:
    """Of equal means the better known one leads; of equally known ones the first."""
    path = f"/v1/experiments/{experiment}"

    def observe(arm: str) -> str:
        wire.send("POST", f"{path}/observations", {"observations": [{"arm": arm, "reward": 1}]})
        return str(wire.send("GET", f"{path}/recommendation").body["arm"])

    assert [observe("arm-1"), observe("arm-0"), observe("arm-1")] == ["arm-1", "arm-0", "arm-1"]


def test_an_etag_is_good_until_something_changes(api: httpx.Client, wire: JsonClient, experiment: str) -> None:
    """The same version answers 304 without a body; a reward, a patch or a draw makes a new strong tag."""
    path = f"/v1/experiments/{experiment}/recommendation"
    seen = set()
    for change in (
        lambda: None,
        lambda: wire.tell(experiment, wire.ask(experiment)["id"], 1),
        lambda: wire.send("PATCH", f"/v1/experiments/{experiment}", {"name": "other"}),
    ):
        change()
        etag = api.get(path).headers["etag"]
        assert etag.startswith('"')
        seen.add(etag)
        for tag in (etag, f"W/{etag}", f'"x", {etag}', "*"):
            same = api.get(path, headers={"If-None-Match": tag})
            assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
        assert api.get(path, headers={"If-None-Match": '"x"'}).status_code == 200
    assert len(seen) == 3
    assert api.get("/v1/experiments/nobody/recommendation", headers={"If-None-Match": "*"}).status_code == 404


def test_looking_changes_nothing(wire: JsonClient, experiment: str) -> None:
    """GET never writes."""
    path = f"/v1/experiments/{experiment}"
    before = wire.send("GET", path).body["version"]
    for where in ("", "/recommendation", "/assignments", "/events"):
        assert wire.send("GET", f"{path}{where}").status == 200
    assert wire.send("GET", path).body["version"] == before


def test_the_audit_log_tells_what_people_did(wire: JsonClient, experiment: str) -> None:
    """Lifecycle, patches, arms, corrections and voids are there, newest first; traffic is not."""
    path = f"/v1/experiments/{experiment}"
    asked = wire.ask(experiment)
    wire.tell(experiment, asked["id"], 1)
    wire.send("PUT", f"{path}/assignments/{asked['id']}/reward", {"reward": 0})
    wire.send("DELETE", f"{path}/assignments/{asked['id']}/reward")
    wire.send("PATCH", path, {"name": "other"})
    wire.send("POST", f"{path}/arms", {"key": "new"})
    wire.send("PATCH", f"{path}/arms/new", {"status": "disabled"})
    wire.send("POST", f"{path}/pause")
    events = wire.send("GET", f"{path}/events").body["events"]
    kinds = [event["kind"] for event in events]
    assert kinds == ["lifecycle", "arm_changed", "arm_added", "patch", "void", "correction", "created"]
    correction = events[5]["details"]
    assert (correction["before"]["reward"], correction["after"]["reward"]) == (1, 0)


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_an_imputed_mean_shows_from_the_first_draw_on(wire: JsonClient, key: str, goal: str) -> None:
    """Under a numeric expiry a pending draw counts in mean and variance; nothing is recommended before the first reward."""
    wire.create(key, arms=arms(2), reward={"kind": "real", "goal": goal}, expiry={"after_seconds": 3600, "reward": 0.25})
    first = wire.ask(key)
    look = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert [(arm["mean"], arm["variance"], arm["observations"]) for arm in look["arms"]] == [(0.25, None, 0), (None, None, 0)]
    assert look["arm"] is None
    for _ in range(3):
        wire.ask(key)
    look = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert [(arm["mean"], arm["variance"]) for arm in look["arms"]] == [(0.25, 0.0), (0.25, 0.0)]
    assert look["arm"] is None
    wire.tell(key, first["id"], 0.75)
    look = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert (look["arm"], look["arms"][0]["mean"], look["arms"][1]["mean"]) == ("arm-0", 0.5, 0.25)
    course = wire.send("GET", f"/v1/experiments/{key}/history").body["points"][-1]
    assert [arm["mean"] for arm in course["arms"]] == [0.5, 0.25]
