"""How sure it is, over HTTP: intervals, separation, drift, the course, and experiments that conclude by themselves."""

from __future__ import annotations

import math
import time
from typing import Any

import httpx
import pytest

from testing.json_client import JsonClient
from tests.api.test_verdict import look_until_kept


def create(api: httpx.Client, key: str, arms: int = 2, **settings: Any) -> None:  # noqa: ANN401 - any JSON
    """An experiment with arms a0, a1 and so on."""
    body = {"key": key, "arms": [{"key": f"a{number}"} for number in range(arms)], **settings}
    assert api.post("/v1/experiments", json=body).status_code == 201


def observe(api: httpx.Client, key: str, arm: str, rewards: list[float]) -> None:
    """Rewards of an arm, in order."""
    items = [{"arm": arm, "reward": reward} for reward in rewards]
    told = api.post(f"/v1/experiments/{key}/observations", json={"observations": items})
    assert {result["status"] for result in told.json()["results"]} == {"recorded"}


def look(api: httpx.Client, key: str) -> dict[str, Any]:
    """The recommendation."""
    found: dict[str, Any] = api.get(f"/v1/experiments/{key}/recommendation").json()
    return found


def finite(value: object) -> bool:
    """No NaN and no infinity anywhere."""
    if isinstance(value, dict):
        return all(finite(one) for one in value.values())
    if isinstance(value, list):
        return all(finite(one) for one in value)
    return not isinstance(value, float) or math.isfinite(value)


def test_a_clear_lead_separates_and_says_so(api: httpx.Client, key: str) -> None:
    """With 9 of 10 against 1 of 10 the leader is separated, its interval lies above, and the sentence says it."""
    create(api, key)
    observe(api, key, "a0", [1.0, 0.0] * 5 + [0.0] * 90)
    observe(api, key, "a1", [1.0] * 90 + [0.0] * 10)
    found = look(api, key)
    assert (found["arm"], found["separated"], found["method"]) == ("a1", True, "beta-binomial mixture")
    low, high = (arm["interval"] for arm in found["arms"])
    assert low[1] < high[0]
    assert found["error_estimate"] < 0.001
    assert "better than every other active arm, with 95% confidence" in found["summary"]


@pytest.mark.parametrize(
    ("reward", "rewards"),
    [
        ({"kind": "binary"}, [0.0]),
        ({"kind": "binary"}, [1.0] * 50),
        ({"kind": "bounded", "min": -2, "max": 5}, [-2.0] * 30),
        ({"kind": "bounded", "min": -2, "max": 5}, [5.0, -2.0] * 20),
        ({"kind": "real"}, [3.5] * 20),
        ({"kind": "real"}, [1e15, 1e15 + 2, 1e15 - 4] * 10),
        ({"kind": "real"}, [1e100, -1e100]),
        ({"kind": "real"}, [1e-300, 2e-300] * 4),
    ],
)
def test_corners_stay_finite_and_inside(api: httpx.Client, key: str, reward: dict[str, Any], rewards: list[float]) -> None:
    """One reward, equal rewards, rewards at the bounds and of any size: no NaN, and intervals within what is possible."""
    create(api, key, reward=reward)
    assert finite(look(api, key))
    observe(api, key, "a0", rewards)
    observe(api, key, "a1", rewards[:1])
    found = look(api, key)
    assert finite(found)
    possible = {"binary": (0, 1), "bounded": (-2, 5), "real": (-math.inf, math.inf)}[reward["kind"]]
    for arm in found["arms"]:
        if arm["interval"]:
            assert possible[0] <= arm["interval"][0] <= arm["mean"] <= arm["interval"][1] <= possible[1]


def test_one_active_arm_is_never_separated(api: httpx.Client, key: str) -> None:
    """There is nothing to be better than."""
    create(api, key)
    observe(api, key, "a0", [1.0] * 100)
    observe(api, key, "a1", [0.0] * 100)
    assert look(api, key)["separated"] is True
    assert api.patch(f"/v1/experiments/{key}/arms/a1", json={"status": "disabled"}).status_code == 200
    alone = look(api, key)
    assert (alone["separated"], alone["error_estimate"]) == (False, 0.0)


def test_intervals_wait_for_the_window(api: httpx.Client, key: str) -> None:
    """Under a numeric expiry a reward counts in the mean at once and in the interval when its window has closed."""
    create(api, key, expiry={"after_seconds": 3600, "reward": 0})
    asked = api.post(f"/v1/experiments/{key}/assignments").json()
    api.post(f"/v1/experiments/{key}/assignments/{asked['id']}/reward", json={"reward": 1})
    found = look(api, key)
    arm = next(one for one in found["arms"] if one["arm"] == asked["arm"])
    assert (arm["mean"], arm["observations"], arm["interval"]) == (1.0, 1, [0.0, 1.0])
    assert any("window has closed" in sentence for sentence in found["assumes"])


def test_a_moving_mean_is_listed(api: httpx.Client, key: str) -> None:
    """An arm that did well for 512 rewards and badly for the next 400 drifts; a steady one does not."""
    create(api, key)
    observe(api, key, "a0", [1.0, 1.0, 1.0, 0.0] * 128 + [0.0, 0.0, 0.0, 1.0] * 100)
    observe(api, key, "a1", [1.0, 0.0] * 456)
    found = look(api, key)
    assert found["drift"] == ["a0"]
    assert "changed over time" in found["summary"]


def test_the_course_ends_now_and_is_thinned(api: httpx.Client, wire: JsonClient, key: str) -> None:
    """Points are evenly thinned, oldest first, and the last one is the present recommendation."""
    create(api, key)
    for _ in range(60):
        observe(api, key, "a0", [1.0, 0.0] * 5)
        observe(api, key, "a1", [0.0] * 10)
    # Keeping the verdict is the last event of this history; before it, course and recommendation may see different ends.
    now = look_until_kept(wire, key)
    course = api.get(f"/v1/experiments/{key}/history", params={"points": 10}).json()["points"]
    versions = [point["version"] for point in course]
    assert len(course) == 10
    assert versions == sorted(versions)
    assert versions[0] <= 40
    last = course[-1]
    assert (last["version"], last["arm"], last["draws"]) == (now["version"], now["arm"], now["draws"])
    assert [arm["interval"] for arm in last["arms"]] == [arm["interval"] for arm in now["arms"]]
    assert api.get(f"/v1/experiments/{key}/history", params={"points": 1}).status_code == 422


def test_evidence_says_how_far_each_rival_is_and_who_holds_it_up(api: httpx.Client, key: str) -> None:
    """All of it for a rival far behind, a part for a close one, null for the leader; the first sentence has the close one's."""
    create(api, key, 3)
    for arm, share in (("a0", 10), ("a1", 55), ("a2", 65)):
        observe(api, key, arm, [1.0] * (3 * share) + [0.0] * (3 * (100 - share)))
    found = look(api, key)
    far, close, leader = (arm["evidence"] for arm in found["arms"])
    assert (found["separated"], found["decided"], far, leader) == (False, False, 1.0, None)
    assert 0.0 < close < 1.0
    assert found["summary"].startswith(f"Not yet: a2 leads, with {int(100 * close)}% of the evidence that a verdict takes. ")


def test_equals_are_decided_by_what_is_worthwhile_and_conclude(api: httpx.Client, key: str) -> None:
    """Nothing separates two equal arms, but no difference of a tenth is left possible; and that can be patched."""
    create(api, key, conclude_when={"decided": True, "min_observations": 100})
    observe(api, key, "a0", [0.0, 1.0] * 1000)
    observe(api, key, "a1", [0.0, 1.0] * 1000)
    before = look(api, key)
    assert (before["separated"], before["decided"], before["status"]) == (False, False, "running")
    described = api.patch(f"/v1/experiments/{key}", json={"worthwhile": 0.1}).json()
    assert (described["worthwhile"], described["conclude_when"]) == (0.1, {"decided": True, "min_observations": 100})
    found = look(api, key)
    assert (found["separated"], found["decided"]) == (False, True)
    assert found["summary"].startswith(
        "You may stop with a0: no other active arm is better by more than 10 percentage points, with"
    )
    deadline = time.monotonic() + 30
    while look(api, key)["status"] == "running" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert look(api, key)["concluded_arm"] == "a0"
    assert api.get(f"/v1/experiments/{key}").json()["worthwhile"] == 0.1


@pytest.mark.parametrize("worthwhile", [0, -0.1, 1, "0.1", 1e101])
def test_what_is_worthwhile_lies_above_zero_and_below_the_range(api: httpx.Client, key: str, worthwhile: object) -> None:
    """Two means cannot differ by more than the range of the rewards."""
    body = {"key": key, "arms": [{"key": "a"}, {"key": "b"}], "worthwhile": worthwhile}
    answer = api.post("/v1/experiments", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/worthwhile"


def test_an_experiment_concludes_by_itself_once(api: httpx.Client, key: str) -> None:
    """Separated and with enough rewards it concludes within seconds, once, and the audit log says by what."""
    create(api, key, conclude_when={"separated": True, "min_observations": 300})
    observe(api, key, "a0", [0.0] * 100)
    observe(api, key, "a1", [1.0] * 100)
    time.sleep(2.5)
    assert (look(api, key)["separated"], look(api, key)["status"]) == (True, "running")
    observe(api, key, "a1", [1.0] * 100)
    deadline = time.monotonic() + 30
    while look(api, key)["status"] == "running" and time.monotonic() < deadline:
        time.sleep(0.2)
    found = look(api, key)
    assert (found["status"], found["concluded_arm"]) == ("concluded", "a1")
    assert "concluded" in found["summary"]
    events = api.get(f"/v1/experiments/{key}/events").json()["events"]
    steps = [event["details"] for event in events if event["kind"] == "lifecycle"]
    assert [(step["move"], step["by"]) for step in steps] == [("conclude", "conclude_when")]
