"""An assignment's way through its states, over HTTP: what each step does to the counts."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

# What happens within `_SOON` must happen before the sweep.
pytestmark = pytest.mark.serial
_SOON = 0.2


class Story:
    """One experiment with a single assignment under observation."""

    def __init__(self, http: httpx.Client, key: str, expiry: dict[str, Any] | None) -> None:
        self.http, self.path = http, f"/v1/experiments/{key}"
        made = {"key": key, "arms": [{"key": "a"}, {"key": "b"}], "expiry": expiry, "reward": {"kind": "real"}}
        assert http.post("/v1/experiments", json=made).status_code == 201
        self.id = self.ask()["id"]

    def ask(self) -> dict[str, Any]:
        """One more assignment."""
        answer = self.http.post(f"{self.path}/assignments", json={})
        assert answer.status_code == 201
        return dict(answer.json())

    def do(self, verb: str, reward: float | None = None) -> httpx.Response:
        """POST, PUT or DELETE its reward."""
        content = {} if reward is None else {"json": {"reward": reward}}
        return self.http.request(verb, f"{self.path}/assignments/{self.id}/reward", **content)  # type: ignore[arg-type]

    def move(self, name: str) -> httpx.Response:
        """A step of the experiment's life."""
        return self.http.post(f"{self.path}/{name}", json={"arm": "a"} if name == "conclude" else None)

    @property
    def status(self) -> str:
        """The assignment's status."""
        return str(self.http.get(f"{self.path}/assignments/{self.id}").json()["status"])

    def counts(self) -> tuple[int, int, int, int, float | None]:
        """(draws, pending, expired, observations, mean) of arm a."""
        [arm] = [arm for arm in self.http.get(f"{self.path}/recommendation").json()["arms"] if arm["arm"] == "a"]
        return arm["draws"], arm["pending"], arm["expired"], arm["observations"], arm["mean"]

    def wait_until(self, status: str) -> None:
        """Wait for the sweep: at most five seconds after the window."""
        deadline = time.monotonic() + _SOON + 5
        while self.status != status:
            assert time.monotonic() < deadline, f"still {self.status}"
            time.sleep(0.02)


def test_a_numeric_expiry_counts_and_a_late_reward_replaces_it(http: httpx.Client, key: str) -> None:
    """Silence counts as the stated reward, then becomes it; a later one takes its place and `expired` falls by one."""
    story = Story(http, key, {"after_seconds": _SOON, "reward": 0.25})
    assert story.counts() == (1, 1, 0, 0, 0.25)
    story.wait_until("expired")
    assert story.counts() == (1, 0, 1, 1, 0.25)
    assert http.get(f"{story.path}/assignments/{story.id}").json()["reward"] == 0.25
    assert story.do("POST", 4).json()["status"] == "rewarded"
    assert story.counts() == (1, 0, 0, 1, 4)


def test_a_reward_equal_to_what_expiry_put_there_still_makes_it_rewarded(http: httpx.Client, key: str) -> None:
    """The late reward is the same number, but now it was told: `expired` falls by one, the mean stays."""
    story = Story(http, key, {"after_seconds": _SOON, "reward": 0})
    story.wait_until("expired")
    assert story.do("POST", 0).json()["status"] == "rewarded"
    assert story.counts() == (1, 0, 0, 1, 0)


@pytest.mark.parametrize("verb", ["POST", "PUT"])
def test_a_dropped_draw_leaves_the_draws_and_counts_again_when_told(http: httpx.Client, key: str, verb: str) -> None:
    """An expiry without a reward takes the draw away; a late reward, by POST or by PUT, brings it back."""
    story = Story(http, key, {"after_seconds": _SOON, "reward": None})
    story.wait_until("expired")
    assert story.counts() == (0, 0, 1, 0, None)
    assert story.do(verb, 3).json()["status"] == "rewarded"
    assert story.counts() == (1, 0, 0, 1, 3)


def test_a_pending_draw_counts_as_its_expiry_reward_from_the_moment_it_is_drawn(http: httpx.Client, key: str) -> None:
    """Two draws of one arm, one told: the mean is that of the told one and the silent one."""
    story = Story(http, key, {"after_seconds": 3600, "reward": 1})
    story.do("POST", 4)
    story.ask()  # arm b, which has no draw yet
    while story.ask()["arm"] != "a":
        pass
    assert story.counts()[:2] == (2, 1)
    assert story.counts()[3:] == (1, 2.5)


def test_the_same_reward_again_counts_once_and_another_is_refused(http: httpx.Client, key: str) -> None:
    """A duplicate is 200 and changes nothing, a different value is 409, PUT corrects it exactly."""
    story = Story(http, key, None)
    assert story.do("POST", 0.1).status_code == 200
    assert story.do("POST", 0.1).status_code == 200
    refused = story.do("POST", 0.2)
    assert (refused.status_code, refused.json()["code"]) == (409, "reward_conflict")
    assert story.counts() == (1, 0, 0, 1, 0.1)
    assert story.do("PUT", 0.2).json()["reward"] == 0.2
    assert story.counts() == (1, 0, 0, 1, 0.2)


@pytest.mark.parametrize("status", ["pending", "rewarded", "expired", "dropped"])
def test_a_void_takes_the_draw_away_from_any_status_and_only_put_brings_it_back(
    http: httpx.Client, key: str, status: str
) -> None:
    """DELETE answers 200, twice; POST is 409; PUT counts it again."""
    story = Story(http, key, {"after_seconds": 3600 if status in ("pending", "rewarded") else _SOON, "reward": 0})
    if status == "dropped":
        story = Story(http, f"{key}-drop", {"after_seconds": _SOON, "reward": None})
    if status == "rewarded":
        story.do("POST", 1)
    if status in ("expired", "dropped"):
        story.wait_until("expired")
    for _ in range(2):
        voided = story.do("DELETE")
        assert (voided.status_code, voided.json()["status"], voided.json()["reward"]) == (200, "voided", None)
        assert story.counts() == (0, 0, 0, 0, None)
    refused = story.do("POST", 1)
    assert (refused.status_code, refused.json()["code"]) == (409, "reward_conflict")
    assert story.do("PUT", 2).json()["status"] == "rewarded"
    assert story.counts() == (1, 0, 0, 1, 2)


def test_a_voided_draw_does_not_expire(http: httpx.Client, key: str) -> None:
    """The sweep leaves it alone."""
    story = Story(http, key, {"after_seconds": _SOON, "reward": 0})
    story.do("DELETE")
    time.sleep(_SOON + 0.5)
    assert story.status == "voided"
    assert story.counts() == (0, 0, 0, 0, None)


@pytest.mark.parametrize("moves", [("pause",), ("conclude",), ("pause", "conclude")])
def test_draws_expire_while_paused_or_concluded(http: httpx.Client, key: str, moves: tuple[str, ...]) -> None:
    """Silence has its meaning whatever the experiment does, and late rewards still count."""
    story = Story(http, key, {"after_seconds": _SOON, "reward": 0})
    for name in moves:
        assert story.move(name).status_code == 200
    story.wait_until("expired")
    assert story.counts() == (1, 0, 1, 1, 0)
    assert story.do("POST", 1).status_code == 200
    assert story.counts() == (1, 0, 0, 1, 1)


def test_an_archived_experiment_is_frozen(http: httpx.Client, key: str) -> None:
    """Nothing expires, nothing is told, nothing is voided."""
    story = Story(http, key, {"after_seconds": 1.0, "reward": 0})
    story.move("conclude")
    assert story.move("archive").status_code == 200
    version = http.get(f"{story.path}/recommendation").json()["version"]
    time.sleep(1.5)
    assert story.status == "pending"
    for verb, reward in (("POST", 1.0), ("PUT", 1.0), ("DELETE", None)):
        refused = story.do(verb, reward)
        assert (refused.status_code, refused.json()["code"]) == (409, "experiment_not_running")
    assert http.get(f"{story.path}/recommendation").json()["version"] == version


def test_corrections_voids_and_expiry_runs_are_audited_with_their_sequence(http: httpx.Client, key: str) -> None:
    """The audit log tells what was before and after; its numbers only grow."""
    story = Story(http, key, {"after_seconds": _SOON, "reward": 0})
    story.wait_until("expired")
    story.do("POST", 1)
    story.do("PUT", 2)
    story.do("DELETE")
    events = http.get(f"{story.path}/events").json()["events"][::-1]
    assert [event["kind"] for event in events] == ["created", "expiry_run", "correction", "void"]
    assert [event["sequence"] for event in events] == sorted(event["sequence"] for event in events)
    assert events[1]["details"]["expired"] == 1
    assert events[2]["details"]["before"] == {"status": "rewarded", "reward": 1}
    assert events[2]["details"]["after"] == {"status": "rewarded", "reward": 2}
    assert events[3]["details"]["after"] == {"status": "voided", "reward": None}
