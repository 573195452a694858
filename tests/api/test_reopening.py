"""Reopen: a concluded experiment is paused again, with nothing lost and no rule that would end it at once."""

from __future__ import annotations

import time

from testing.json_client import JsonClient, arms


def test_a_reopened_experiment_serves_no_arm_and_goes_on(wire: JsonClient, experiment: str) -> None:
    """Paused, without a concluded arm; resumed, it draws again, with the next number."""
    path = f"/v1/experiments/{experiment}"
    wire.tell(experiment, wire.ask(experiment)["id"], 1)
    wire.send("POST", f"{path}/conclude", {"arm": "arm-1"})
    reopened = wire.send("POST", f"{path}/reopen")
    assert (reopened.status, reopened.body["status"], reopened.body["concluded_arm"]) == (200, "paused", None)
    assert wire.send("GET", f"{path}/recommendation").body["concluded_arm"] is None
    refused = wire.send("POST", f"{path}/assignments", {})
    assert (refused.status, refused.body["code"]) == (409, "experiment_not_running")
    assert wire.send("PATCH", f"{path}/arms/arm-1", {"status": "disabled"}).status == 200, "no arm is bound any more"
    wire.send("POST", f"{path}/resume")
    assert wire.ask(experiment)["draw"] == 2


def test_reopening_is_repeatable_and_keeps_its_idempotency_key(wire: JsonClient, experiment: str) -> None:
    """Sent again it changes nothing; with its key it gives the first answer even after the experiment went on."""
    path = f"/v1/experiments/{experiment}"
    wire.send("POST", f"{path}/conclude", {"arm": "arm-1"})
    first = wire.send("POST", f"{path}/reopen", Idempotency_Key="once")
    assert wire.send("POST", f"{path}/reopen").body == first.body
    paused = wire.send("POST", f"{path}/pause")
    assert (paused.status, paused.body["code"]) == (409, "illegal_transition"), "another step led here"
    wire.send("POST", f"{path}/resume")
    again = wire.send("POST", f"{path}/reopen", Idempotency_Key="once")
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (200, first.body, "true")
    fresh = wire.send("POST", f"{path}/reopen")
    assert (fresh.status, fresh.body["code"]) == (409, "illegal_transition")


def test_a_reopened_experiment_is_not_concluded_by_the_rule_that_ended_it(wire: JsonClient, key: str) -> None:
    """The rule goes when the experiment is reopened, as the answer and the log say; set again, it takes effect again."""
    path = f"/v1/experiments/{key}"
    rule = {"separated": True, "min_observations": 2}
    wire.create(key, arms=arms(2), conclude_when=rule)
    told = [{"arm": f"arm-{turn % 2}", "reward": turn % 2} for turn in range(200)]
    wire.send("POST", f"{path}/observations", {"observations": told})
    _wait_for_status(wire, path, "concluded")
    reopened = wire.send("POST", f"{path}/reopen")
    assert (reopened.body["status"], reopened.body["conclude_when"]) == ("paused", None)
    event = wire.send("GET", f"{path}/events?page_size=1").body["events"][0]
    assert (event["kind"], event["details"]) == (
        "lifecycle",
        {
            "move": "reopen",
            "by": "request",
            "before": {"status": "concluded", "concluded_arm": "arm-1", "conclude_when": rule},
            "after": {"status": "paused", "concluded_arm": None, "conclude_when": None},
        },
    )
    wire.send("POST", f"{path}/observations", {"observations": told[:2]})
    time.sleep(2.5)  # two sweeps
    assert wire.send("GET", path).body["status"] == "paused"
    wire.send("PATCH", path, {"conclude_when": rule})
    _wait_for_status(wire, path, "concluded")


def _wait_for_status(wire: JsonClient, path: str, status: str) -> None:
    deadline = time.monotonic() + 20
    while wire.send("GET", path).body["status"] != status:
        assert time.monotonic() < deadline, f"it never was {status}"
        time.sleep(0.05)
