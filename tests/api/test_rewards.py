"""Tell: rewards, the same again, conflicts, corrections, voids, batches and observations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.json_client import JsonClient, arms
from testing.server import Server


@pytest.fixture(scope="module", params=[False, True], ids=["hot", "framework"])
def wire(server: Server, request: pytest.FixtureRequest) -> Iterator[JsonClient]:
    """Both ways to the same use cases: the short one, and the framework."""
    with JsonClient(server.url, by_framework=request.param) as connection:
        yield connection


def test_a_reward(wire: JsonClient, experiment: str) -> None:
    """The answer is the assignment, rewarded; it shows in the recommendation at once."""
    asked = wire.ask(experiment)
    told = wire.tell(experiment, asked["id"], 1)
    assert told == asked | {"status": "rewarded", "reward": 1, "rewarded_at": told["rewarded_at"]}
    assert told["rewarded_at"] >= asked["created_at"]
    look = wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body
    assert (look["draws"], look["observations"], look["pending"]) == (1, 1, 0)


def test_the_same_reward_counts_once(wire: JsonClient, experiment: str) -> None:
    """Told again it is 200 and changes nothing; another value is 409 reward_conflict."""
    asked = wire.ask(experiment)
    told = wire.tell(experiment, asked["id"], 0)
    version = wire.send("GET", f"/v1/experiments/{experiment}").body["version"]
    for same in (0, 0.0, -0.0):
        assert wire.tell(experiment, asked["id"], same) == told
    other = wire.send("POST", f"/v1/experiments/{experiment}/assignments/{asked['id']}/reward", {"reward": 1})
    assert (other.status, other.body["code"]) == (409, "reward_conflict")
    assert wire.send("GET", f"/v1/experiments/{experiment}").body["version"] == version


def test_a_correction_replaces_and_a_void_removes(wire: JsonClient, experiment: str) -> None:
    """PUT corrects, DELETE voids, again and again; a voided one takes no POST but a PUT brings it back."""
    asked = wire.ask(experiment)
    path = f"/v1/experiments/{experiment}/assignments/{asked['id']}/reward"
    assert wire.send("PUT", path, {"reward": 0}).body["status"] == "rewarded"
    assert wire.send("PUT", path, {"reward": 1}).body["reward"] == 1
    for _ in range(2):
        voided = wire.send("DELETE", path)
        assert (voided.status, voided.body["status"], voided.body["reward"]) == (200, "voided", None)
    look = wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body
    assert (look["draws"], look["observations"], look["arm"]) == (0, 0, None)
    refused = wire.send("POST", path, {"reward": 1})
    assert (refused.status, refused.body["code"]) == (409, "reward_conflict")
    assert wire.send("PUT", path, {"reward": 1}).body["status"] == "rewarded"
    assert wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body["observations"] == 1


def test_another_experiment_s_assignment_is_unknown(wire: JsonClient, experiment: str, key: str) -> None:
    """An id is good for its own experiment only, its random part included."""
    wire.create(f"{key}-other", arms=arms(2))
    asked, theirs = wire.ask(experiment), wire.ask(f"{key}-other")
    altered = asked["id"][:-1] + ("0" if asked["id"][-1] != "0" else "1")
    for wrong in (theirs["id"], altered, "asg_x", asked["id"].upper()):
        for method, path, body in (
            ("GET", f"/v1/experiments/{experiment}/assignments/{wrong}", None),
            ("POST", f"/v1/experiments/{experiment}/assignments/{wrong}/reward", {"reward": 1}),
            ("PUT", f"/v1/experiments/{experiment}/assignments/{wrong}/reward", {"reward": 1}),
            ("DELETE", f"/v1/experiments/{experiment}/assignments/{wrong}/reward", None),
        ):
            reply = wire.send(method, path, body)
            assert (reply.status, reply.body["code"]) == (404, "assignment_not_found"), (method, path)


def test_a_draft_takes_no_rewards(wire: JsonClient, key: str) -> None:
    """Draft experiments answer 409 experiment_not_running to every tell."""
    wire.create(key, arms=arms(2), status="draft")
    for path, body in (
        ("rewards", {"rewards": [{"unit": "u", "reward": 1}]}),
        ("observations", {"observations": [{"arm": "arm-0", "reward": 1}]}),
        (f"assignments/asg_{'0' * 27}/reward", {"reward": 1}),
    ):
        reply = wire.send("POST", f"/v1/experiments/{key}/{path}", body)
        assert (reply.status, reply.body["code"]) == (409, "experiment_not_running"), path


@pytest.mark.parametrize("steps", [["pause"], ["conclude"]])
def test_late_rewards_count(wire: JsonClient, experiment: str, steps: list[str]) -> None:
    """A paused or concluded experiment draws nothing but takes rewards."""
    asked = wire.ask(experiment)
    for step in steps:
        wire.send("POST", f"/v1/experiments/{experiment}/{step}", {"arm": "arm-0"} if step == "conclude" else None)
    assert wire.tell(experiment, asked["id"], 1)["status"] == "rewarded"


@pytest.mark.parametrize(
    ("reward", "good", "bad"),
    [
        ({"kind": "binary"}, [0, 1, 1.0], [0.5, 2, -1]),
        ({"kind": "bounded", "min": -1, "max": 2.5}, [-1, 2.5, 0.1], [-1.0000001, 2.6, 1e100]),
        ({"kind": "real"}, [1e100, -1e100, 5e-324], [1.1e100, -1e101, 1e308]),
    ],
    ids=["binary", "bounded", "real"],
)
def test_rewards_keep_to_their_kind(
    wire: JsonClient, key: str, reward: dict[str, object], good: list[float], bad: list[float]
) -> None:
    """What the kind allows is taken exactly; anything else is 422 and not counted."""
    wire.create(key, arms=arms(2), reward=reward)
    for value in bad:
        asked = wire.ask(key)
        refused = wire.send("POST", f"/v1/experiments/{key}/assignments/{asked['id']}/reward", {"reward": value})
        assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, "/reward")
    for value in good:
        assert wire.tell(key, wire.ask(key)["id"], value)["reward"] == value
    look = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert (look["observations"], look["pending"]) == (len(good), len(bad))


def test_a_batch_of_rewards(wire: JsonClient, key: str) -> None:
    """Each item has its own result, in order; the good ones count whatever the others are."""
    wire.create(key, arms=arms(2), sticky=True)
    first, second = wire.ask(key, "a"), wire.ask(key, "b")
    items = [
        {"assignment": first["id"], "reward": 1},
        {"assignment": first["id"], "reward": 1},
        {"assignment": first["id"], "reward": 0},
        {"unit": "b", "reward": 0},
        {"unit": "nobody", "reward": 0},
        {"assignment": "asg_unknown", "reward": 0},
        {"assignment": second["id"], "reward": 0.5},
        {"assignment": second["id"], "reward": True},
        {"assignment": second["id"], "reward": 1, "typo": 1},
        {"reward": 1},
        {"assignment": first["id"], "unit": "b", "reward": 1},
        "nonsense",
    ]
    reply = wire.send("POST", f"/v1/experiments/{key}/rewards", {"rewards": items}, idempotency_key="r")
    expected = ["recorded", "duplicate", "conflict", "recorded", "not_found", "not_found", *["invalid"] * 6]
    assert (reply.status, [result["status"] for result in reply.body["results"]]) == (200, expected)
    again = wire.send("POST", f"/v1/experiments/{key}/rewards", {"rewards": items}, idempotency_key="r")
    assert (again.body, again.headers["idempotency-replayed"]) == (reply.body, "true")
    look = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert (look["observations"], look["pending"]) == (2, 0)


def test_rewards_by_unit_need_stickiness(wire: JsonClient, experiment: str) -> None:
    """Elsewhere a unit may have many assignments, so the item is invalid."""
    wire.ask(experiment, "u")
    reply = wire.send("POST", f"/v1/experiments/{experiment}/rewards", {"rewards": [{"unit": "u", "reward": 1}]})
    assert reply.body["results"][0]["status"] == "invalid"


def test_observations(wire: JsonClient, experiment: str) -> None:
    """Tell without ask: counted as draws and observations without a draw number, once per id, for disabled arms too."""
    wire.send("PATCH", f"/v1/experiments/{experiment}/arms/arm-1", {"status": "disabled"})
    items = [
        {"arm": "arm-0", "reward": 1, "id": "import-77"},
        {"arm": "arm-0", "reward": 1, "id": "import-77"},
        {"arm": "arm-1", "reward": 1, "id": "import-77"},
        {"arm": "arm-0", "reward": 0, "id": "import-77"},
        {"arm": "arm-1", "reward": 0},
        {"arm": "arm-1", "reward": 0},
        {"arm": "nobody", "reward": 0},
        {"arm": "arm-0", "reward": 3},
    ]
    reply = wire.send("POST", f"/v1/experiments/{experiment}/observations", {"observations": items})
    expected = ["recorded", "duplicate", "conflict", "conflict", "recorded", "recorded", "not_found", "invalid"]
    assert [result["status"] for result in reply.body["results"]] == expected
    again = wire.send("POST", f"/v1/experiments/{experiment}/observations", {"observations": items[:1]})
    assert again.body["results"][0]["status"] == "duplicate"
    look = wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body
    assert [(arm["draws"], arm["observations"]) for arm in look["arms"]] == [(1, 1), (2, 2)]
    assert wire.ask(experiment)["draw"] == 1
