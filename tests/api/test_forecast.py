"""The forecast over HTTP: its shape, its limits, and that nobody waits for it but who asked."""

from __future__ import annotations

import threading
import time

import httpx

from tests.api.test_certainty import create, look, observe


def test_a_forecast_tells_draws_times_and_what_waiting_is_worth(api: httpx.Client, key: str) -> None:
    """Exactly the contract's fields, in order, as of the version that was looked at."""
    create(api, key, 3)
    for arm, share in (("a0", 30), ("a1", 40), ("a2", 50)):
        observe(api, key, arm, [1.0] * share + [0.0] * (100 - share))
    found = api.get(f"/v1/experiments/{key}/forecast").json()
    assert list(found) == ["draws", "at", "rate_per_day", "shortfall_now", "never", "version"]
    assert found["draws"]["low"] <= found["draws"]["median"]
    assert found["at"]["low"] <= found["at"]["median"]
    assert found["rate_per_day"] > 0
    assert 0 < found["shortfall_now"] < 0.2
    assert (found["never"], found["version"]) == (False, look(api, key)["version"])
    assert api.get(f"/v1/experiments/{key}/forecast").json() == found


def test_a_verdict_that_is_there_needs_no_draws(api: httpx.Client, key: str) -> None:
    """Zero, now."""
    create(api, key)
    observe(api, key, "a0", [0.0] * 100)
    observe(api, key, "a1", [1.0] * 100)
    assert api.get(f"/v1/experiments/{key}/forecast").json()["draws"] == {"median": 0, "low": 0, "high": 0}


def test_without_a_reward_or_a_rival_there_is_no_forecast(api: httpx.Client, key: str) -> None:
    """409, with the code of a missing recommendation; an unknown experiment is 404."""
    create(api, key)
    answer = api.get(f"/v1/experiments/{key}/forecast")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_recommendation")
    observe(api, key, "a0", [1.0] * 10)
    api.patch(f"/v1/experiments/{key}/arms/a1", json={"status": "disabled"})
    assert api.get(f"/v1/experiments/{key}/forecast").json()["code"] == "no_recommendation"
    assert api.get(f"/v1/experiments/{key}-not/forecast").status_code == 404


def test_too_many_arms_are_refused(api: httpx.Client, key: str) -> None:
    """Up to 100 active ones."""
    create(api, key, 101)
    observe(api, key, "a0", [1.0])
    answer = api.get(f"/v1/experiments/{key}/forecast")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_arms")
    api.patch(f"/v1/experiments/{key}/arms/a100", json={"status": "disabled"})
    assert api.get(f"/v1/experiments/{key}/forecast").status_code == 200


def test_while_a_forecast_is_computed_others_are_answered(api: httpx.Client, key: str) -> None:
    """A look at another experiment comes back many times before one long forecast does."""
    create(api, key, 100)
    for number in range(100):
        observe(api, key, f"a{number}", [1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    done: list[float] = []
    asking = threading.Thread(target=lambda: done.append(_seconds(api, key)))
    asking.start()
    answered = 0
    while not done:
        assert api.get("/healthz").status_code == 200
        answered += 1
    asking.join()
    assert answered >= 5


def _seconds(api: httpx.Client, key: str) -> float:
    started = time.monotonic()
    assert api.get(f"/v1/experiments/{key}/forecast").status_code == 200
    return time.monotonic() - started
