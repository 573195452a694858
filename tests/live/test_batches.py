"""Batch asks, batch tells and observations over HTTP: up to 10,000 items, one transaction, once per key and per id."""

from __future__ import annotations

from typing import Any

import httpx

_MOST = 10_000


def create(http: httpx.Client, key: str, **settings: object) -> str:
    """An experiment; its path."""
    made = {"key": key, "arms": [{"key": "a"}, {"key": "b"}, {"key": "c"}], **settings}
    assert http.post("/v1/experiments", json=made).status_code == 201
    return f"/v1/experiments/{key}"


def look(http: httpx.Client, path: str) -> dict[str, Any]:
    """The recommendation."""
    return dict(http.get(f"{path}/recommendation").json())


def test_ten_thousand_asks_and_tells_in_one_request_each(http: httpx.Client, key: str) -> None:
    """Draw numbers without gaps, every reward recorded, and one more item is refused as a whole."""
    path = create(http, key)
    asked = http.post(f"{path}/assignments/batch", json={"count": _MOST})
    assert asked.status_code == 201
    drawn = asked.json()["assignments"]
    assert [one["draw"] for one in drawn] == list(range(1, _MOST + 1))
    rewards = [{"assignment": one["id"], "reward": one["draw"] % 2} for one in drawn]
    told = http.post(f"{path}/rewards", json={"rewards": rewards})
    assert [result["status"] for result in told.json()["results"]] == ["recorded"] * _MOST
    again = http.post(f"{path}/rewards", json={"rewards": rewards})
    assert [result["status"] for result in again.json()["results"]] == ["duplicate"] * _MOST
    assert (look(http, path)["draws"], look(http, path)["observations"], look(http, path)["pending"]) == (_MOST, _MOST, 0)
    too_many = (
        http.post(f"{path}/assignments/batch", json={"count": _MOST + 1}),
        http.post(f"{path}/rewards", json={"rewards": [*rewards, rewards[0]]}),
    )
    assert [refused.status_code for refused in too_many] == [422, 422]


def test_a_batch_takes_one_transaction(http: httpx.Client, key: str) -> None:
    """All draws of a batch are made at one time under one lock: their sequence numbers have no gap."""
    path = create(http, key)
    before = look(http, path)["version"]
    http.post(f"{path}/assignments/batch", json={"count": 500})
    after = look(http, path)
    assert after["version"] == before + 500
    drawn = http.get(f"{path}/assignments", params={"page_size": 100}).json()["assignments"]
    assert len({one["created_at"] for one in drawn}) == 1


def test_a_repeated_batch_ask_gives_the_first_answer(http: httpx.Client, key: str) -> None:
    """The same key and body draw once; the same key with another body is refused."""
    path = create(http, key)
    sent = {"Idempotency-Key": "batch-1"}
    first = http.post(f"{path}/assignments/batch", json={"count": 50}, headers=sent)
    http.post(f"{path}/assignments", json={})
    second = http.post(f"{path}/assignments/batch", json={"count": 50}, headers=sent)
    assert second.headers["Idempotency-Replayed"] == "true"
    assert second.json() == first.json()
    other = http.post(f"{path}/assignments/batch", json={"count": 51}, headers=sent)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert look(http, path)["draws"] == 51


def test_repeated_units_of_a_sticky_batch_share_one_assignment(http: httpx.Client, key: str) -> None:
    """Known units come back with reason `sticky`; a count is refused; where not sticky each is a draw."""
    path = create(http, key, sticky=True)
    first = http.post(f"{path}/assignments", json={"unit": "ann"}).json()
    answers = http.post(f"{path}/assignments/batch", json={"units": ["bob", "ann", "bob", "eve"]}).json()["assignments"]
    assert [(one["unit"], one["reason"] == "sticky") for one in answers] == [
        ("bob", False),
        ("ann", True),
        ("bob", True),
        ("eve", False),
    ]
    assert answers[1]["id"] == first["id"]
    assert answers[0]["id"] == answers[2]["id"]
    refused = http.post(f"{path}/assignments/batch", json={"count": 2})
    assert (refused.status_code, refused.json()["code"]) == (422, "unit_required")
    plain = create(http, f"{key}-plain")
    answers = http.post(f"{plain}/assignments/batch", json={"units": ["bob", "bob"]}).json()["assignments"]
    assert [one["draw"] for one in answers] == [1, 2]


def test_every_reward_of_a_batch_has_its_own_result(http: httpx.Client, key: str) -> None:
    """Good items count whatever the others are, in order, also when one batch names an assignment twice."""
    path = create(http, key, sticky=True)
    units = ["u1", "u2", "u3", "u4"]
    ids = [one["id"] for one in http.post(f"{path}/assignments/batch", json={"units": units}).json()["assignments"]]
    http.request("DELETE", f"{path}/assignments/{ids[3]}/reward")
    rewards: list[Any] = [
        {"assignment": ids[0], "reward": 1},
        {"assignment": ids[0], "reward": 1},
        {"assignment": ids[0], "reward": 0},
        {"unit": "u2", "reward": 0},
        {"unit": "nobody", "reward": 1},
        {"assignment": "asg_" + "0" * 27, "reward": 1},
        {"assignment": ids[2], "reward": 0.5},
        {"assignment": ids[2]},
        {"assignment": ids[2], "unit": "u3", "reward": 1},
        {"assignment": ids[2], "reward": True},
        {"assignment": ids[3], "reward": 1},
        "not an item",
        {"assignment": ids[2], "reward": 1},
    ]
    results = http.post(f"{path}/rewards", json={"rewards": rewards}).json()["results"]
    assert [result["status"] for result in results] == [
        "recorded",
        "duplicate",
        "conflict",
        "recorded",
        "not_found",
        "not_found",
        "invalid",
        "invalid",
        "invalid",
        "invalid",
        "conflict",
        "invalid",
        "recorded",
    ]
    assert look(http, path)["observations"] == 3


def test_rewards_by_unit_need_a_sticky_experiment(http: httpx.Client, key: str) -> None:
    """Elsewhere a unit may have many assignments, so the item is invalid."""
    path = create(http, key)
    http.post(f"{path}/assignments", json={"unit": "ann"})
    results = http.post(f"{path}/rewards", json={"rewards": [{"unit": "ann", "reward": 1}]}).json()["results"]
    assert [result["status"] for result in results] == ["invalid"]


def test_ten_thousand_observations_count_once_per_id(http: httpx.Client, key: str) -> None:
    """An import may be sent again: named items are duplicates, changed ones conflicts, and none takes a draw number."""
    path = create(http, key)
    items = [{"arm": "abc"[number % 3], "reward": number % 2, "id": f"row-{number}"} for number in range(_MOST)]
    first = http.post(f"{path}/observations", json={"observations": items}).json()["results"]
    assert [result["status"] for result in first] == ["recorded"] * _MOST
    items[0] |= {"reward": 1}
    items[1] |= {"arm": "c"}
    second = http.post(f"{path}/observations", json={"observations": items}).json()["results"]
    assert [result["status"] for result in second] == ["conflict", "conflict"] + ["duplicate"] * (_MOST - 2)
    seen = look(http, path)
    assert (seen["draws"], seen["observations"], seen["pending"]) == (_MOST, _MOST, 0)
    assert http.post(f"{path}/assignments", json={}).json()["draw"] == 1


def test_observations_of_disabled_and_unknown_arms(http: httpx.Client, key: str) -> None:
    """A disabled arm takes observations, an unknown one is not found, an unnamed item counts each time."""
    path = create(http, key)
    http.patch(f"{path}/arms/b", json={"status": "disabled"})
    items = [{"arm": "b", "reward": 1}, {"arm": "b", "reward": 1}, {"arm": "z", "reward": 1}, {"arm": "a", "reward": 7}]
    results = http.post(f"{path}/observations", json={"observations": items}).json()["results"]
    assert [result["status"] for result in results] == ["recorded", "recorded", "not_found", "invalid"]
    assert [arm["observations"] for arm in look(http, path)["arms"]] == [0, 2, 0]


def test_a_repeated_batch_of_rewards_gives_the_first_answer(http: httpx.Client, key: str) -> None:
    """With an idempotency key the retry is told what the first request was told, not `duplicate`."""
    path = create(http, key)
    drawn = http.post(f"{path}/assignments/batch", json={"count": 3}).json()["assignments"]
    rewards = {"rewards": [{"assignment": one["id"], "reward": 1} for one in drawn]}
    for route, body in (("rewards", rewards), ("observations", {"observations": [{"arm": "a", "reward": 0}]})):
        first = http.post(f"{path}/{route}", json=body, headers={"Idempotency-Key": "retry"})
        second = http.post(f"{path}/{route}", json=body, headers={"Idempotency-Key": "retry"})
        assert second.headers["Idempotency-Replayed"] == "true"
        assert first.json() == second.json()
    assert look(http, path)["observations"] == 4


def test_draft_and_archived_experiments_take_nothing(http: httpx.Client, key: str) -> None:
    """Asks and tells are refused as a whole."""
    path = create(http, key, status="draft")

    def refusals() -> list[tuple[int, str]]:
        answers = (
            http.post(f"{path}/assignments/batch", json={"count": 2}),
            http.post(f"{path}/rewards", json={"rewards": [{"assignment": "asg_" + "0" * 27, "reward": 1}]}),
            http.post(f"{path}/observations", json={"observations": [{"arm": "a", "reward": 1}]}),
        )
        return [(answer.status_code, answer.json()["code"]) for answer in answers]

    assert refusals() == [(409, "experiment_not_running")] * 3
    for move in ("start", "conclude", "archive"):
        assert http.post(f"{path}/{move}", json={"arm": "a"} if move == "conclude" else None).status_code == 200
    assert refusals() == [(409, "experiment_not_running")] * 3
