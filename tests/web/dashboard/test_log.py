"""The log on the page: people's doings first, findings in words, expiries folded by the hour."""

from __future__ import annotations

from typing import Any

import httpx
from playwright.sync_api import Page, expect

from tests.web.dashboard.traffic import create, visit


def event(at: str, kind: str = "expiry_run", expired: int = 1) -> dict[str, Any]:
    """An entry of the log."""
    return {"kind": kind, "at": at, "details": {"expired": expired}}


def test_expiries_of_an_hour_are_one_line(page: Page) -> None:
    """Runs of one hour are added up; another hour, or something between them, begins a new line."""
    page.goto("/")
    events = [
        event("2026-01-01T11:00:02Z", expired=1),
        event("2026-01-01T10:59:59Z", expired=2),
        event("2026-01-01T10:00:00Z", expired=3),
        event("2026-01-01T09:59:59Z", kind="patch", expired=0),
        event("2026-01-01T09:30:00Z", expired=4),
        event("2026-01-01T09:10:00Z", expired=5),
    ]
    folded = page.evaluate("async (events) => (await import('/static/audit.js')).together(events)", events)
    assert [(one["kind"], one["details"]["expired"]) for one in folded] == [
        ("expiry_run", 1),
        ("expiry_run", 5),
        ("patch", 0),
        ("expiry_run", 9),
    ]


def test_what_people_did_is_not_buried_under_expiries(page: Page, http: httpx.Client, key: str) -> None:
    """The log opens with people's doings; everything, expiries included, is one press away."""
    create(http, key, expiry={"after_seconds": 0.1, "reward": 0})
    http.post(f"/v1/experiments/{key}/assignments/batch", json={"count": 5})
    page.goto(f"/experiments/{key}")
    log = page.locator(".log")
    expect(log).to_contain_text("Created")
    expect(page.locator(".figures")).to_contain_text("Pending0")
    expect(log).not_to_contain_text("expired")
    page.get_by_role("button", name="Everything").click()
    expect(log).to_contain_text("5 silent draws expired")
    page.get_by_role("button", name="By people").click()
    expect(log.locator("li")).to_have_count(1)


def test_findings_and_changes_are_told_in_words(page: Page, http: httpx.Client, key: str) -> None:
    """What was shown names both arms; a change names what was and what is."""
    arms = [{"key": "grey", "name": "Grey"}, {"key": "green", "name": "Green"}]
    create(http, key, arms=arms, control="grey", worthwhile=0.05)
    visit(http, key, {"grey": 0.6, "green": 0.1}, visitors=600)
    http.patch(f"/v1/experiments/{key}", json={"tags": ["shop"], "expiry": {"after_seconds": 3600, "reward": 0}})
    http.patch(f"/v1/experiments/{key}/arms/green", json={"min_share": 0.1})
    page.goto(f"/experiments/{key}")
    log = page.locator(".log")
    expect(log).to_contain_text("tags none → shop")
    expect(log).to_contain_text("after 1 hour 0")
    expect(log).to_contain_text("Arm green changed: floor 0% → 10%")
    page.get_by_role("button", name="Findings").click()
    expect(log).to_contain_text("Shown: Grey is better than Green")
    expect(log).to_contain_text("Shown: Green is harmful, worse than Grey, the control")


def test_what_was_read_is_not_read_again(page: Page, http: httpx.Client, key: str) -> None:
    """After the first page only news are asked for, and older entries that were fetched stay."""
    create(http, key)
    for number in range(120):
        http.patch(f"/v1/experiments/{key}", json={"name": f"Name {number}"})
    page.goto(f"/experiments/{key}")
    entries = page.locator(".log li")
    expect(entries).to_have_count(100)
    page.get_by_role("button", name="Show older").click()
    expect(entries).to_have_count(121)
    with page.expect_request(lambda request: "/events?" in request.url) as asked:
        http.post(f"/v1/experiments/{key}/pause")
    assert "since=" in asked.value.url
    expect(entries).to_have_count(122)
    expect(entries.first).to_contain_text("Paused")
