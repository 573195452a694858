"""The forecast over HTTP: its shape, its limits, and that nobody waits for it but who asked."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from service.application.reads.forecast import Outlook
from service.simulation.futures import Forecast
from service.web.api.views import forecast_view
from testing.json_client import JsonClient
from tests.api.test_certainty import create, look, observe
from tests.api.test_verdict import create as create_evenly
from tests.api.test_verdict import look_until_kept, tell


def test_a_forecast_tells_draws_times_and_what_waiting_is_worth(api: httpx.Client, key: str) -> None:
    """Exactly the contract's fields, in order, as of the version that was looked at."""
    create(api, key, 3)
    for arm, share in (("a0", 30), ("a1", 40), ("a2", 50)):
        observe(api, key, arm, [1.0] * share + [0.0] * (100 - share))
    found = api.get(f"/v1/experiments/{key}/forecast").json()
    assert list(found) == ["draws", "at", "rate_per_day", "shortfall_now", "never", "within", "waiting", "version"]
    assert found["draws"]["low"] <= found["draws"]["median"]
    assert found["at"]["low"] <= found["at"]["median"]
    assert found["rate_per_day"] > 0
    assert 0 < found["shortfall_now"] < 0.2
    assert found["within"] is None
    assert (found["never"], found["version"]) == (False, look(api, key)["version"])
    assert api.get(f"/v1/experiments/{key}/forecast").json() == found


def test_a_verdict_that_is_there_needs_no_draws(api: httpx.Client, key: str) -> None:
    """Zero, now."""
    create(api, key)
    observe(api, key, "a0", [0.0] * 100)
    observe(api, key, "a1", [1.0] * 100)
    assert api.get(f"/v1/experiments/{key}/forecast").json()["draws"] == {"median": 0, "low": 0, "high": 0}


def test_it_says_how_likely_the_verdict_is_within_some_days(api: httpx.Client, key: str) -> None:
    """Surer with more days, and certain once it is there; days are above 0 and up to ten years."""
    create(api, key, 2)
    for arm, share in (("a0", 40), ("a1", 52)):
        observe(api, key, arm, [1.0] * share + [0.0] * (100 - share))
    path = f"/v1/experiments/{key}/forecast"
    rate = api.get(path).json()["rate_per_day"]
    few, more = (api.get(path, params={"within_days": draws / rate}).json()["within"] for draws in (100, 20_000))
    assert few["days"] < more["days"]
    assert 0 <= few["probability"] < more["probability"] <= 1
    for days in (0, -1, 3651, "soon"):
        answer = api.get(path, params={"within_days": days})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/query/within_days")


def test_the_rate_is_that_of_asks_whatever_was_told_without_one(api: httpx.Client, key: str) -> None:
    """Of an experiment that begins with past rewards, too: the later half of its asks; while there is none, of the course."""
    create(api, key, 2)
    for arm, share in (("a0", 40), ("a1", 52)):
        observe(api, key, arm, [1.0] * share + [0.0] * (100 - share))
    *course, present = api.get(f"/v1/experiments/{key}/history", params={"points": 1000}).json()["points"]
    middle = [point for point in course if 2 * point["draws"] <= present["draws"]][-1]
    later = (present["draws"] - middle["draws"]) * timedelta(days=1) / (_moment(present["at"]) - _moment(middle["at"]))
    assert forecast(api, key)["rate_per_day"] == pytest.approx(later)
    made = [_moment(api.post(f"/v1/experiments/{key}/assignments", json={}).json()["created_at"]) for _ in range(6)]
    observe(api, key, "a0", [0.0] * 100)
    found, now = forecast(api, key), _moment(look(api, key)["as_of"])
    assert found["rate_per_day"] == pytest.approx(3 * timedelta(days=1) / (now - made[2]))
    (row,) = api.get("/dashboard/experiments", params={"text": key}).json()["experiments"]
    assert row["rate_per_day"] == found["rate_per_day"]


def test_one_batch_of_asks_has_a_rate_too(api: httpx.Client, key: str) -> None:
    """Since the experiment was created: its later half took no time, however soon the first reward comes after it."""
    create(api, key, 2)
    observe(api, key, "a0", [1.0, 0.0])
    first, *_ = api.post(f"/v1/experiments/{key}/assignments/batch", json={"count": 10}).json()["assignments"]
    assert api.post(f"/v1/experiments/{key}/assignments/{first['id']}/reward", json={"reward": 1}).status_code == 200
    begun = _moment(api.get(f"/v1/experiments/{key}").json()["created_at"])
    passed = _moment(look(api, key)["as_of"]) - begun
    assert forecast(api, key)["rate_per_day"] == pytest.approx(10 * timedelta(days=1) / passed)


def test_a_verdict_that_probably_never_comes_has_its_draws_and_times_all_the_same() -> None:
    """What it would take is told: half of the futures have it at last."""
    never = Forecast(6_000_000, 900_000, None, 0.001, (900_000.0, 6_000_000.0, float("inf")), never=True)
    shown = forecast_view(Outlook(version=7, as_of=0, forecast=never, rate_per_day=1_000_000.0, running=True))
    assert (shown["never"], shown["draws"]) == (True, {"median": 6_000_000, "low": 900_000, "high": None})
    assert shown["at"] == {"median": "1970-01-07T00:00:00.000000Z", "low": "1970-01-01T21:36:00.000000Z", "high": None}


def test_without_traffic_nothing_is_told_in_time(api: httpx.Client, key: str) -> None:
    """A paused experiment has a forecast in draws alone, and waits for nothing."""
    create(api, key, 2)
    for arm, share in (("a0", 40), ("a1", 52)):
        observe(api, key, arm, [1.0] * share + [0.0] * (100 - share))
    assert api.post(f"/v1/experiments/{key}/pause").status_code == 200
    paused = api.get(f"/v1/experiments/{key}/forecast", params={"within_days": 7}).json()
    assert paused["draws"]["low"] > 0
    assert (paused["within"], paused["waiting"], paused["at"]) == ({"days": 7.0, "probability": None}, None, None)


def test_waiting_costs_what_goes_to_arms_that_are_shown_to_be_worse(api: httpx.Client, key: str) -> None:
    """Their target share, and its distance to the best mean at the rate of traffic; nothing while there is none."""
    create(api, f"{key}-even", 3)
    for arm in ("a0", "a1", "a2"):
        observe(api, f"{key}-even", arm, [1.0, 0.0])
    waiting = api.get(f"/v1/experiments/{key}-even/forecast").json()["waiting"]
    assert waiting == {"share": 0.0, "reward_per_day": 0.0}
    create(api, key, 3, policy={"kind": "simple_tracking"})
    for arm, share in (("a0", 5), ("a1", 60), ("a2", 55)):
        observe(api, key, arm, [1.0] * (2 * share) + [0.0] * (2 * (100 - share)))
    found, now = api.get(f"/v1/experiments/{key}/forecast").json(), look(api, key)
    worst, best, _ = now["arms"]
    assert not now["separated"]
    assert worst["evidence"] == 1.0
    assert found["waiting"]["share"] == pytest.approx(worst["target_share"])
    lost = worst["target_share"] * (best["mean"] - worst["mean"]) * found["rate_per_day"]
    assert found["waiting"]["reward_per_day"] == pytest.approx(lost)


def test_a_verdict_that_is_kept_has_no_future_date(wire: JsonClient, key: str) -> None:
    """Rewards that would not show it any more leave it where it was: no draws, since then, within any time."""
    create_evenly(wire, key)
    tell(wire, key, {"a0": 0.75, "a1": 0.25}, 200)
    since = look_until_kept(wire, key)["verdict"]["since"]
    tell(wire, key, {"a0": 0.0, "a1": 0.4}, 300)
    found = wire.send("GET", f"/v1/experiments/{key}/forecast?within_days=0.001").body
    assert found["draws"] == {"median": 0, "low": 0, "high": 0}
    assert found["at"] == {"median": since, "low": since, "high": since}
    assert (found["never"], found["within"]["probability"]) == (False, 1.0)


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


def forecast(api: httpx.Client, key: str) -> dict[str, Any]:
    """Of this version: one that is two seconds old would do for others."""
    end = time.monotonic() + 20
    while True:
        found: dict[str, Any] = api.get(f"/v1/experiments/{key}/forecast").json()
        if found["version"] == look(api, key)["version"] or time.monotonic() > end:
            return found
        time.sleep(0.1)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _seconds(api: httpx.Client, key: str) -> float:
    started = time.monotonic()
    assert api.get(f"/v1/experiments/{key}/forecast").status_code == 200
    return time.monotonic() - started
