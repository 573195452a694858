"""What a page owes everyone: text as text, no other site's hand, any screen, any reader, any number of experiments."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from testing.server import Server
from tests.web.dashboard.traffic import create, visit

MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>&amp;'\"\x07"


@pytest.fixture(scope="module")
def rich(http: httpx.Client) -> None:
    """An experiment with everything on it; it stays where other tests come between those that look at it."""
    if http.get("/v1/experiments/rich").status_code == 200:
        return
    arms = [{"key": f"arm-{number}", "name": f"Arm number {number}", "value": number} for number in range(5)]
    create(
        http,
        "rich",
        name="A rich experiment",
        description="With a description.",
        arms=arms,
        expiry={"after_seconds": 3600, "reward": 0},
    )
    visit(http, "rich", {f"arm-{number}": number / 6 for number in range(5)}, visitors=200)
    http.patch("/v1/experiments/rich/arms/arm-0", json={"status": "disabled"})


@pytest.mark.usefixtures("rich")
@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
@pytest.mark.parametrize("where", ["/", "/new", "/docs", "/experiments/rich", "/experiments/unknown"])
def test_axe_finds_nothing(browser: Browser, dashboard: Server, where: str, *, scheme: str, width: int) -> None:
    """Every page passes axe-core, light on a phone and dark on a desk, and is never wider than the screen."""
    looks: Any = {"color_scheme": scheme, "viewport": {"width": width, "height": 780}}
    with browser.new_context(base_url=dashboard.url, **looks) as screen:
        page = screen.new_page()
        page.goto(where)
        page.wait_for_selector("main h1")
        if where == "/experiments/rich":
            page.locator(".chart svg[data-version]").nth(2).wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the screen"
        found = Axe().run(page)
        assert not found.response["violations"], found.generate_report()


def test_the_questions_pass_axe_and_work_by_keyboard(page: Page, http: httpx.Client, key: str) -> None:
    """A dialog opens and closes by keyboard alone and is as accessible as the page."""
    create(http, key)
    page.goto(f"/experiments/{key}")
    page.get_by_role("button", name="Add arm").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Key")).to_be_focused()
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()
    page.keyboard.type("by-keyboard")
    page.keyboard.press("Enter")
    expect(page.locator("tr[data-arm=by-keyboard]")).to_be_visible()


def test_markup_is_shown_as_text(page: Page, http: httpx.Client, key: str) -> None:
    """Names, values and descriptions full of markup appear letter by letter, on every page and in every picture."""
    arms = [{"key": "a", "name": MARKUP, "value": MARKUP}, {"key": "b", "name": MARKUP + "2", "value": {MARKUP: MARKUP}}]
    create(http, key, name=MARKUP, description=MARKUP, arms=arms)
    visit(http, key, {"a": 0.2, "b": 0.8})
    page.goto(f"/experiments/{key}")
    expect(page.get_by_role("heading", level=1)).to_have_text(MARKUP.strip())
    expect(page.locator("tr[data-arm=a] .arm-name")).to_contain_text("<script>")
    page.get_by_role("button", name=re.compile("^Edit <img")).first.click()
    expect(page.get_by_label("Value")).to_have_value(re.compile("<script>"))
    page.keyboard.press("Escape")
    page.goto(f"/?text={key}")
    expect(page.locator("tbody")).to_contain_text("<img src=x")
    for chart in ("means", "traffic", "certainty"):
        answer = http.get(f"/v1/experiments/{key}/charts/{chart}.svg")
        assert answer.headers["content-security-policy"] == "default-src 'none'"
        assert "<script" not in answer.text
        page.goto(str(answer.url))
        assert page.evaluate("document.documentElement.nodeName") == "svg", "not a well-formed picture"
    assert page.evaluate("document.querySelectorAll('script, img').length") == 0


@pytest.mark.usefixtures("rich")
def test_pages_carry_the_strict_policy(http: httpx.Client) -> None:
    """No inline script or style, nothing from elsewhere, no frame around it."""
    for where in ("/", "/new", "/docs", "/experiments/rich"):
        answer = http.get(where)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"<style|style=|<script(?![^>]*src=)|\son\w+=|https?://", answer.text)


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_another_site_cannot_change_anything(http: httpx.Client, key: str, headers: dict[str, str]) -> None:
    """A browser's request from another site is refused; the dashboard's own and a program's are not."""
    create(http, key)
    refused = http.post(f"/v1/experiments/{key}/pause", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "cross_site_request")
    assert refused.headers["content-type"] == "application/problem+json"
    assert http.get(f"/v1/experiments/{key}").json()["status"] == "running"
    own = {"Sec-Fetch-Site": "same-origin", "Origin": str(http.base_url).rstrip("/")}
    assert http.post(f"/v1/experiments/{key}/pause", headers=own).status_code == 200
    assert http.post(f"/v1/experiments/{key}/resume").status_code == 200


def test_a_form_of_another_site_is_refused(browser: Browser, dashboard: Server, http: httpx.Client, key: str) -> None:
    """The same, with a real form in a real browser."""
    create(http, key)
    with browser.new_context() as screen:
        page = screen.new_page()
        page.route(
            "http://evil.example/",
            lambda route: route.fulfill(
                content_type="text/html",
                body=f"<form method=post action='{dashboard.url}/v1/experiments/{key}/pause'><button>Win</button></form>",
            ),
        )
        page.goto("http://evil.example/")
        with page.expect_response(f"**/{key}/pause") as answered:
            page.get_by_role("button").click()
        assert answered.value.status == 403
    assert http.get(f"/v1/experiments/{key}").json()["status"] == "running"


def _multiply(database: Path, key: str, times: int) -> None:
    """Copy an experiment in the database, much faster than the API could create so many."""
    fresh = {
        "experiments": {"id": "100000 + n", "key": f"'{key}-' || printf('%04d', n)", "name": "'Experiment ' || n || ' of many'"},
        "arms": {"experiment_id": "100000 + n"},
    }
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        (own,) = connection.execute("SELECT id FROM experiments WHERE key = ?", [key]).fetchone()
        for table, new in fresh.items():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            chosen = ", ".join(new.get(column, f"old.{column}") for column in columns)
            connection.execute(
                "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < :last) "
                f"INSERT INTO {table} SELECT {chosen} FROM {table} AS old, numbers "
                f"WHERE old.{next(iter(new))} = :own",
                {"last": times - 1, "own": own},
            )


@pytest.mark.serial
def test_a_thousand_experiments_are_found_by_search_and_pages(page: Page, http: httpx.Client, database: Path) -> None:
    """The list stays quick, counts what there is, finds by key and name, and says how far it can order what it must compute."""
    create(http, "many", control="control", tags=["of-many"])
    visit(http, "many", {"control": 0.3, "variant": 0.5}, visitors=200)
    http.post("/v1/experiments/many/pause")
    _multiply(database, "many", 1_000)
    page.goto("/?status=paused&tag=of-many")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(20)
    expect(page.locator(".pager")).to_contain_text("1\u201320 of 1,001")
    began = time.monotonic()
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".pager")).to_contain_text("21\u201340")
    page.get_by_label("Search experiments").fill("MANY-0420")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Experiment 420 of many")
    assert time.monotonic() - began < 5
    expect(rows).to_contain_text("Leading")
    page.get_by_label("Search experiments").fill("many-01")
    expect(page.locator(".pager")).to_contain_text("of 100")
    page.get_by_role("button", name="Verdict").click()
    expect(page.get_by_role("columnheader", name="Verdict")).to_have_attribute("aria-sort", "descending")
    expect(page.locator(".list-note")).not_to_contain_text("Only this page")
    page.get_by_label("Search experiments").fill("many")
    expect(page.locator(".list-note")).to_contain_text("Only this page is in that order: 1,001 experiments")
    expect(rows).to_have_count(20)
    page.get_by_label("Search experiments").fill("100% of_many")
    expect(page.locator(".notice")).to_contain_text("Nothing matches")


def test_two_hundred_arms_are_found_by_search_and_pages(page: Page, http: httpx.Client, key: str) -> None:
    """The table of arms shows the best ones first and finds the others."""
    arms = [{"key": f"arm-{number:03}", "name": f"Variant {number}"} for number in range(200)]
    create(http, key, arms=arms)
    visit(http, key, {arm["key"]: index / 250 for index, arm in enumerate(arms)}, visitors=1_000)
    page.goto(f"/experiments/{key}")
    rows = page.locator("tr[data-arm]")
    expect(rows).to_have_count(10, timeout=15_000)  # the first look at so many arms may start a process
    expect(rows.first).to_contain_text("leads")
    page.get_by_role("button", name="Show all 200 arms").click()
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".arms-section .pager")).to_contain_text("51\u2013100 of 200")
    page.get_by_label("Search arms").fill("variant 123")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("arm-123")


def test_unknown_and_empty_are_said(page: Page, http: httpx.Client, key: str) -> None:
    """An experiment without rewards and one that does not exist both say so."""
    create(http, key)
    page.goto(f"/experiments/{key}")
    expect(page.locator(".behind details")).to_contain_text("too early")
    expect(page.locator("tr[data-arm=control]")).to_contain_text("\u2013")
    assert http.get("/experiments/unknown").status_code == 404
