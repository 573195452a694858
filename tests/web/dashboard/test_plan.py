"""The form for a new experiment says what to expect, and what is wrong, in the units that were typed."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

QUESTION: dict[str, Any] = {"arms": 3, "baseline": 0.2, "lift": 0.1, "worthwhile": 0.1, "per_day": 500}


def test_the_form_says_what_to_expect(page: Page) -> None:
    """As soon as there are a baseline and what it is worth from: visitors, days, equals, the policy, the winner's share."""
    page.goto("/new")
    plan = page.locator(".plan")
    expect(plan).to_contain_text("Say the baseline and what it is worth from")
    page.get_by_label("Baseline (%)").fill("20")
    page.get_by_label("Worth it from").fill("10")
    answer = page.locator(".plan-answer")
    expect(answer).to_have_text(
        re.compile(r"^About [\d,]+ visitors \(80% of the time between [\d,]+ and [\d,]+\)\.$"), timeout=30_000
    )
    page.get_by_label("Visitors a day").fill("100")
    expect(answer).to_have_text(re.compile(r"days at 100 a day\.$"), timeout=30_000)
    for words in ("If no arm is better", "Until the best is separated", "Simple Tracking", "Traffic to the winner"):
        expect(plan).to_contain_text(words)
    page.get_by_role("button", name="Add arm").click()
    expect(plan).to_contain_text(re.compile("equal shares"), timeout=30_000)
    page.get_by_label("Worth it from").fill("90")
    expect(plan).to_contain_text("No plan yet", timeout=30_000)


def test_other_rewards_are_planned_in_their_own_units(page: Page) -> None:
    """No percent, and how much they vary is asked for."""
    page.goto("/new")
    page.get_by_label("Kind").select_option("real")
    page.get_by_label("Baseline", exact=True).fill("14")
    page.get_by_label("Worth it from (difference)").fill("2")
    expect(page.locator(".plan")).to_contain_text("Say how much rewards vary")
    page.get_by_label("Rewards vary by").fill("5")
    expect(page.locator(".plan-answer")).to_contain_text("visitors", timeout=30_000)


def test_everything_that_is_typed_is_created(page: Page, http: httpx.Client, key: str) -> None:
    """Control, what is worthwhile, tags, owner, and when it concludes by itself."""
    page.goto("/new")
    page.get_by_label("Key").first.fill(key)
    page.get_by_label("Tags").fill("checkout, mobile")
    page.get_by_label("Owner").fill("growth@shop.example")
    page.get_by_role("button", name="Add arm").click()
    page.get_by_label("Key").nth(3).fill("third")
    expect(page.get_by_label("Control").locator("option")).to_have_text(["None", "control", "variant", "third"])
    page.get_by_label("Control").select_option(label="third")
    page.get_by_label("Key").nth(3).fill("today")
    page.get_by_label("Worth it from").fill("2.5")
    page.get_by_label("Conclude by itself").select_option("beats_control")
    page.get_by_label("at least this many").fill("500")
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url(re.compile(f"/experiments/{key}$"))
    created = http.get(f"/v1/experiments/{key}").json()
    assert (created["control"], created["worthwhile"]) == ("today", 0.025)
    assert (created["tags"], created["owner"]) == (["checkout", "mobile"], "growth@shop.example")
    assert created["conclude_when"]["beats_control"] is True
    assert created["conclude_when"]["min_observations"] == 500


def test_errors_speak_in_the_units_typed_and_leave_when_mended(page: Page, key: str) -> None:
    """Percent for shares and rates, hours for times; each message goes when its field changes."""
    page.goto("/new")
    page.get_by_label("Key").first.fill(key)
    page.get_by_label("Confidence").fill("120")
    page.get_by_label("Floor").first.fill("300")
    page.get_by_label("Worth it from").fill("-2")
    page.get_by_label("When no reward comes").select_option("drop")
    page.get_by_label("After (hours)").fill("1000000")
    page.get_by_role("button", name="Create experiment").click()
    confidence = page.locator("[data-pointer='/confidence'] ~ .field-error")
    expect(confidence).to_contain_text("less than 100%")
    expect(page.locator("[data-pointer='/arms/0/min_share'] ~ .field-error")).to_contain_text("100%")
    expect(page.locator("[data-pointer='/worthwhile'] ~ .field-error")).to_contain_text("greater than 0%")
    expect(page.locator("[data-pointer='/expiry/after_seconds'] ~ .field-error")).to_contain_text("87,600 hours")
    page.get_by_label("Confidence").fill("95")
    expect(confidence).to_be_hidden()
    expect(page.get_by_label("Confidence")).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator("[data-pointer='/worthwhile'] ~ .field-error")).to_be_visible()


def test_a_removed_arm_is_no_control(page: Page, http: httpx.Client, key: str) -> None:
    """The choice goes back to none, and the plan goes on with the arms that are left."""
    page.goto("/new")
    page.get_by_label("Key").first.fill(key)
    page.get_by_role("button", name="Add arm").click()
    page.get_by_label("Key").nth(3).fill("third")
    page.get_by_role("button", name="Remove").first.click()
    expect(page.get_by_label("Control")).to_have_value("")
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url(re.compile(f"/experiments/{key}$"))
    assert http.get(f"/v1/experiments/{key}").json()["control"] is None


def test_a_plan_is_answered_while_others_are_served(http: httpx.Client) -> None:
    """It is played in a process of its own: the worker answers others meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(http.post, "/dashboard/plan", json=QUESTION | {"arms": 50, "baseline": 0.201})
        served = 0
        while not asked.done():
            served += http.get("/healthz").status_code == 200
    told = asked.result()
    assert told.status_code == 200, told.text
    assert served > 3
    assert told.json()["until"] == "decided"
    assert told.json()["draws"]["median"] > 0


def test_the_window_of_silence_is_part_of_the_wait(http: httpx.Client) -> None:
    """A day until silence counts is a day more at least."""
    told = http.post("/dashboard/plan", json=QUESTION | {"expiry": {"after_seconds": 864_000, "reward": 0}}).json()
    assert told["days"]["low"] > 10.0


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"arms": 1}, "/arms"),
        ({"arms": 101}, "/arms"),
        ({"arms": 10**30}, "/arms"),
        ({"baseline": 0.95}, "/baseline"),
        ({"lift": 0}, "/lift"),
        ({"baseline": None}, "/baseline"),
        ({"min_shares": [0.5, 0.5, 0.5]}, "/min_share"),
        ({"best": 7}, "/best"),
        ({"reward": {"kind": "real"}}, "/deviation"),
        ({"per_day": 0}, "/per_day"),
        ({"expiry": {"after_seconds": 315_360_000, "reward": 0}, "per_day": 1e12}, "/expiry"),
        ({"runs": 10**9}, "/runs"),
    ],
)
def test_what_cannot_be_planned_is_refused_where_it_is_wrong(http: httpx.Client, changes: dict[str, Any], pointer: str) -> None:
    """422, with the field."""
    answer = http.post("/dashboard/plan", json=QUESTION | changes)
    assert answer.status_code == 422, answer.text
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
