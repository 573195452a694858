"""The verdict over HTTP: kept once shown, ended by what it rests on, told against the control."""

from __future__ import annotations

import time
from math import log
from typing import Any

import pytest

from testing.json_client import JsonClient

Found = dict[str, Any]


def create(wire: JsonClient, key: str, arms: int = 2, **settings: Any) -> None:  # noqa: ANN401 - any JSON
    """An experiment with arms a0, a1 and so on, evenly drawn."""
    made = [{"key": f"a{number}"} for number in range(arms)]
    wire.create(key, arms=made, **{"policy": {"kind": "uniform"}} | settings)


def tell(wire: JsonClient, key: str, shares: dict[str, float], draws: int = 400) -> list[str]:
    """Ask so often, and reward each arm by its share, evenly spread; the assignments."""
    asked = wire.send("POST", f"/v1/experiments/{key}/assignments/batch", {"count": draws}).body["assignments"]
    sums = dict.fromkeys(shares, 0.0)
    rewards = []
    for one in asked:
        sums[one["arm"]] += shares[one["arm"]]
        rewards.append({"assignment": one["id"], "reward": int(sums[one["arm"]] >= 1)})
        sums[one["arm"]] %= 1
    results = wire.send("POST", f"/v1/experiments/{key}/rewards", {"rewards": rewards}).body["results"]
    assert {result["status"] for result in results} == {"recorded"}
    return [one["id"] for one in asked]


def look(wire: JsonClient, key: str) -> Found:
    """The recommendation."""
    found: Found = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    return found


def look_until(wire: JsonClient, key: str, **verdict: Any) -> Found:  # noqa: ANN401 - any JSON
    """The recommendation, as soon as its verdict has these parts."""
    end = time.monotonic() + 20
    while True:
        found = look(wire, key)
        if all(found["verdict"][name] == value for name, value in verdict.items()) or time.monotonic() > end:
            return found
        time.sleep(0.05)


def look_until_kept(wire: JsonClient, key: str) -> Found:
    """The recommendation once its verdict has a time."""
    end = time.monotonic() + 20
    while True:
        found = look(wire, key)
        if found["verdict"]["since"] is not None or time.monotonic() > end:
            return found
        time.sleep(0.05)


def events(wire: JsonClient, key: str, kind: str) -> list[Found]:
    """Entries of the audit log."""
    page = wire.send("GET", f"/v1/experiments/{key}/events?page_size=100").body["events"]
    return [event for event in page if event["kind"] == kind]


def test_an_experiment_goes_from_collecting_over_leading_to_decided(wire: JsonClient, key: str) -> None:
    """Each with its progress; once it is kept, the verdict has a time and the history an entry with both arms."""
    create(wire, key)
    found = look(wire, key)["verdict"]
    assert found == {"state": "collecting", "reason": None, "arm": None, "progress": 0.0, "held_up_by": None, "since": None}
    tell(wire, key, {"a0": 0.6, "a1": 0.3}, 80)
    found = look(wire, key)
    assert (found["verdict"]["state"], found["verdict"]["held_up_by"], found["separated"]) == ("leading", "a1", False)
    assert 0 < found["verdict"]["progress"] < 1
    tell(wire, key, {"a0": 0.8, "a1": 0.2})
    assert look(wire, key)["verdict"]["state"] == "decided"
    found = look_until_kept(wire, key)
    assert (found["verdict"]["reason"], found["verdict"]["arm"], found["verdict"]["progress"]) == ("separated", "a0", 1.0)
    assert found["separated_at"] == found["verdict"]["since"] is not None
    (entry,) = events(wire, key, "separated")
    assert (entry["arm"], entry["details"]["better"], entry["details"]["worse"]) == ("a1", "a0", "a1")
    assert 0 < entry["details"]["level"] < 0.05
    assert entry["details"]["evidence"] == pytest.approx(-log(entry["details"]["level"]))


def test_a_verdict_is_kept_and_ends_with_what_it_rests_on(wire: JsonClient, key: str) -> None:
    """Rewards that would not show it any more leave it; a correction of one of its arms ends it."""
    create(wire, key)
    known = tell(wire, key, {"a0": 0.75, "a1": 0.25}, 200)
    first = look_until_kept(wire, key)["verdict"]
    assert first["state"] == "decided"
    tell(wire, key, {"a0": 0.0, "a1": 0.4}, 300)
    found = look(wire, key)
    assert (found["verdict"]["state"], found["verdict"]["arm"], found["verdict"]["since"]) == ("decided", "a0", first["since"])
    assert found["separated"]
    corrected = wire.send("PUT", f"/v1/experiments/{key}/assignments/{known[0]}/reward", {"reward": 1})
    assert corrected.status == 200
    found = look(wire, key)
    assert (found["verdict"]["state"], found["separated"], found["separated_at"]) == ("leading", False, None)


@pytest.mark.parametrize("disturbance", ["void", "observation", "arm", "disabled", "confidence"])
def test_whatever_disturbs_it_ends_it(wire: JsonClient, key: str, disturbance: str) -> None:
    """Voids, imports, changes of the arms and of the confidence."""
    create(wire, key, 3)
    known = tell(wire, key, {"a0": 0.75, "a1": 0.25, "a2": 0.25}, 300)
    assert look_until_kept(wire, key)["separated_at"] is not None
    path = f"/v1/experiments/{key}"
    done = {
        "void": lambda: wire.send("DELETE", f"{path}/assignments/{known[0]}/reward"),
        "observation": lambda: wire.send("POST", f"{path}/observations", {"observations": [{"arm": "a0", "reward": 1}]}),
        "arm": lambda: wire.send("POST", f"{path}/arms", {"key": "late"}),
        "disabled": lambda: wire.send("PATCH", f"{path}/arms/a2", {"status": "disabled"}),
        "confidence": lambda: wire.send("PATCH", path, {"confidence": 0.99999}),
    }[disturbance]()
    assert done.status in (200, 201)
    assert look(wire, key)["separated_at"] is None


def test_the_course_marks_the_moment_that_is_kept(wire: JsonClient, key: str) -> None:
    """Points are separated from then on, also where their own rewards would not show it, and none before."""
    create(wire, key)
    tell(wire, key, {"a0": 0.75, "a1": 0.25}, 200)
    kept = look_until_kept(wire, key)["separated_at"]
    tell(wire, key, {"a0": 0.0, "a1": 0.4}, 300)
    course = wire.send("GET", f"/v1/experiments/{key}/history").body
    assert course["separated_at"] == kept
    assert course["points"][-1]["separated"]
    assert [point["separated"] for point in course["points"]] == [point["at"] >= kept for point in course["points"]]


def test_a_name_or_a_pause_ends_nothing(wire: JsonClient, key: str) -> None:
    """What it does not rest on leaves the verdict as it was."""
    create(wire, key)
    tell(wire, key, {"a0": 0.75, "a1": 0.25}, 200)
    kept = look_until_kept(wire, key)["separated_at"]
    wire.send("PATCH", f"/v1/experiments/{key}", {"name": "Another", "tags": ["x"]})
    wire.send("POST", f"/v1/experiments/{key}/pause")
    assert look(wire, key)["separated_at"] == kept


def test_the_control_is_set_changed_and_shown(wire: JsonClient, key: str) -> None:
    """By the arm's key, in settings, lists and the audit log; an arm that is not there is refused."""
    refused = wire.send("POST", "/v1/experiments", {"key": key, "arms": [{"key": "a"}, {"key": "b"}], "control": "c"})
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, "/control")
    create(wire, key, control="a1")
    assert wire.send("GET", f"/v1/experiments/{key}").body["control"] == "a1"
    patched = wire.send("PATCH", f"/v1/experiments/{key}", {"control": "a0"})
    assert (patched.status, patched.body["control"]) == (200, "a0")
    (entry,) = events(wire, key, "patch")
    assert (entry["details"]["before"], entry["details"]["after"]) == ({"control": "a1"}, {"control": "a0"})
    assert wire.send("PATCH", f"/v1/experiments/{key}", {"control": None}).body["control"] is None


def test_lift_and_harm_are_told_against_the_control(wire: JsonClient, key: str) -> None:
    """Difference and ratio with intervals around them, null for the control; what is worse is harmful, and kept so."""
    create(wire, key, 3, control="a0")
    tell(wire, key, {"a0": 0.5, "a1": 0.2, "a2": 0.8}, 900)
    found = look(wire, key)
    control, worse, better = found["arms"]
    assert (control["lift"], control["harmful"], worse["harmful"], better["harmful"]) == (None, False, True, False)
    lift = better["lift"]
    assert lift["difference"] == pytest.approx(0.3, abs=0.02)
    assert 0 < lift["difference_interval"][0] < lift["difference"] < lift["difference_interval"][1]
    assert lift["ratio"] == pytest.approx(1.6, abs=0.05)
    assert 1 < lift["ratio_interval"][0] < lift["ratio"] < lift["ratio_interval"][1]
    assert "the control" in found["summary"]
    look_until_kept(wire, key)
    (entry,) = events(wire, key, "harmful")
    assert (entry["details"]["better"], entry["details"]["worse"]) == ("a0", "a1")
    (entry,) = events(wire, key, "beats_control")
    assert (entry["arm"], entry["details"]["better"], entry["details"]["worse"]) == ("a2", "a2", "a0")
    assert events(wire, key, "decided") == []  # nobody asked for that to be a verdict


def test_what_is_shown_of_the_best_arm_is_not_said_of_the_one_that_is_served(wire: JsonClient, key: str) -> None:
    """Concluded with a loser, the sentences name it, how far it is behind, its lift, and which arm was shown to be better."""
    create(wire, key, 3, control="a2")
    tell(wire, key, {"a0": 0.8, "a1": 0.2, "a2": 0.5}, 900)
    assert look(wire, key)["summary"].startswith("You may stop with a0: it is better than every other active arm, with 95%")
    wire.send("POST", f"/v1/experiments/{key}/conclude", {"arm": "a1"})
    found = look(wire, key)
    assert (found["verdict"]["arm"], found["verdict"]["reason"], found["arm"]) == ("a1", "separated", "a0")
    served, lift, *_ = found["summary"].split(". ")
    assert served == "The experiment is concluded and serves a1, whose mean is 60 percentage points behind a0's, the best"
    assert lift.startswith("Against a2, the control, a1 is worse by 30 percentage points (the difference lies between -")
    assert "It is shown that a0 is better than every other active arm, with 95% confidence." in found["summary"]


def test_floors_are_told_only_where_they_bind(wire: JsonClient, key: str) -> None:
    """A floor below what the policy gives anyway is not worth a word; one that holds a bad arm up is."""
    arms = [{"key": "good", "min_share": 0.05}, {"key": "bad", "min_share": 0.4}, {"key": "worse"}]
    wire.create(key, arms=arms, policy={"kind": "simple_tracking"})
    tell(wire, key, {"good": 0.9, "bad": 0.1, "worse": 0.05}, 600)
    found = look(wire, key)
    assert "bad keeps a promised share of the traffic" in found["summary"]
    assert "good keeps" not in found["summary"]
    assert any("least share of traffic" in sentence for sentence in found["assumes"])


def test_without_a_control_there_is_no_lift(wire: JsonClient, key: str) -> None:
    """And nothing harmful."""
    create(wire, key)
    tell(wire, key, {"a0": 0.8, "a1": 0.1}, 200)
    assert [(arm["lift"], arm["harmful"]) for arm in look(wire, key)["arms"]] == [(None, False)] * 2


def test_an_experiment_concludes_when_it_beats_the_control(wire: JsonClient, key: str) -> None:
    """With the arm that beats it, although two good arms cannot be told apart."""
    refused = wire.send(
        "POST",
        "/v1/experiments",
        {"key": key, "arms": [{"key": "a"}, {"key": "b"}], "conclude_when": {"beats_control": True}},
    )
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, "/conclude_when/beats_control")
    create(wire, key, 3, control="a0", conclude_when={"beats_control": True})
    assert wire.send("GET", f"/v1/experiments/{key}").body["conclude_when"] == {"beats_control": True, "min_observations": 0}
    tell(wire, key, {"a0": 0.3, "a1": 0.7, "a2": 0.7}, 900)
    found = look_until(wire, key, state="concluded")
    assert (found["verdict"]["state"], found["status"]) == ("concluded", "concluded")
    assert found["concluded_arm"] in ("a1", "a2")


def test_nothing_worthwhile_left_is_a_verdict(wire: JsonClient, key: str) -> None:
    """Equal arms end, and the end is kept."""
    create(wire, key, worthwhile=0.3)
    tell(wire, key, {"a0": 0.5, "a1": 0.5}, 600)
    found = look_until_kept(wire, key)
    assert (found["verdict"]["state"], found["verdict"]["reason"]) == ("decided", "nothing_worthwhile")
    assert (found["separated"], found["decided"]) == (False, True)
