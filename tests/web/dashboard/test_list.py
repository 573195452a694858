"""The list that decides: verdict, arm, lift, share, traffic, start and forecast in a row, filters and orders over all of them."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.web.dashboard.traffic import create, visit

THREE = [{"key": "grey", "name": "Grey"}, {"key": "green", "name": "Green"}, {"key": "red", "name": "Red"}]
CLEAR = {"grey": 0.3, "green": 0.9, "red": 0.05}


@pytest.fixture(scope="module", autouse=True)
def _started(http: httpx.Client) -> None:
    """The process that computes the list is started by the first who asks for it, which may take seconds on a busy machine."""
    assert http.get("/dashboard/experiments").status_code == 200


def glance(http: httpx.Client, key: str) -> dict[str, Any]:
    """An experiment as the list has it."""
    (found,) = http.get("/dashboard/experiments", params={"text": key}).json()["experiments"]
    return dict(found)


def keys(page: Page) -> list[str]:
    """The experiments on the page, from above."""
    return [str(row.get_attribute("data-key")) for row in page.locator("tbody tr").all()]


def test_a_row_answers_whether_to_stop_with_which_arm_and_what_it_brings(page: Page, http: httpx.Client, key: str) -> None:
    """Decided, by which arm, how much better than the control, who is harmed, how much traffic, since when."""
    create(http, key, arms=THREE, control="grey", tags=["one-tag"], owner="Somebody")
    page.goto(f"/?text={key}")
    row = page.locator("tbody tr")
    expect(row).to_contain_text("Collecting")
    expect(row).to_contain_text("not yet")
    for seed in range(4):
        visit(http, key, CLEAR, visitors=200, seed=seed)
    expect(row.locator(".verdict-sign.decided")).to_be_visible()
    expect(row).to_contain_text("Red is harmful")
    expect(row.locator(".leader")).to_have_text("Green")
    found = http.get(f"/v1/experiments/{key}/recommendation").json()
    standing = next(arm for arm in found["arms"] if arm["arm"] == "green")
    expect(row).to_contain_text(f"+{(standing['lift']['ratio'] - 1) * 100:.0f}%")
    expect(row).to_contain_text("800 draws")
    expect(row).to_contain_text(re.compile(r"\d a day|[KM] a day"))
    expect(row).to_contain_text("just now")
    expect(row).to_contain_text(re.compile("since [0-9]+ "))


def test_a_row_is_about_one_arm(page: Page, http: httpx.Client, key: str) -> None:
    """Also when a loser was concluded: name, share, sparkline and lift are its own, which is served."""
    create(http, key, arms=THREE, control="grey", policy={"kind": "simple_tracking", "seed": 7})
    for seed in range(3):
        visit(http, key, CLEAR, visitors=200, seed=seed)
    assert glance(http, key)["arm"]["key"] == "green"
    http.post(f"/v1/experiments/{key}/conclude", json={"arm": "red"})
    page.goto(f"/?text={key}")
    expect(page.locator("tbody tr .leader")).to_have_text("Red")
    shown = glance(http, key)
    told = http.get(f"/v1/experiments/{key}/recommendation").json()
    red = next(arm for arm in told["arms"] if arm["arm"] == "red")
    assert (told["arm"], told["concluded_arm"]) == ("green", "red")
    assert shown["verdict"]["arm"] == shown["arm"]["key"] == "red"
    assert shown["share"] == red["share"]
    assert shown["sparkline"][-1] == pytest.approx(red["share"], abs=1e-4)
    assert shown["lift"] == red["lift"]
    expect(page.locator("tbody tr")).to_contain_text(f"{red['share'] * 100:.0f}%")
    expect(page.locator("tbody tr .worse")).to_contain_text("\u2212")


def test_without_a_control_the_row_says_so(page: Page, http: httpx.Client, key: str) -> None:
    """And where the control leads, that it does."""
    create(http, key)
    visit(http, key, {"control": 0.9, "variant": 0.1})
    page.goto(f"/?text={key}")
    expect(page.locator("tbody tr")).to_contain_text("no control")
    http.patch(f"/v1/experiments/{key}", json={"control": "control"})
    expect(page.locator("tbody tr")).to_contain_text("is the control")


def test_a_forecast_comes_by_itself(page: Page, http: httpx.Client, key: str) -> None:
    """While the verdict is open, the row tells when it will be there, as the forecast does."""
    create(http, key, control="control")
    visit(http, key, {"control": 0.4, "variant": 0.55}, visitors=200)
    page.goto(f"/?text={key}")
    row = page.locator("tbody tr")
    expect(row).to_contain_text("Leading")
    expect(row).to_contain_text(re.compile("draws to go|probably never"))
    told = http.get(f"/v1/experiments/{key}/forecast").json()
    assert glance(http, key)["forecast"]["draws"] == told["draws"]


def test_tags_and_owners_narrow_the_list(page: Page, http: httpx.Client, key: str) -> None:
    """By a click on a label or by choice, kept in the address, counted by the tabs; the API filters by the same words."""
    create(http, f"{key}-a", tags=["alpha", key], owner=f"Ann {key}")
    create(http, f"{key}-b", tags=[key], owner=f"Bob {key}", status="draft")
    page.goto(f"/?text={key}")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.locator(f"tr[data-key={key}-a]").get_by_role("button", name=f"Ann {key}").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "owner=Ann" in page.url
    expect(page.get_by_role("button", name="All 1")).to_be_visible()
    page.get_by_label("Filter by owner").select_option("")
    page.get_by_label("Filter by tag").select_option(key)
    page.get_by_label("Search experiments").fill("")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.get_by_role("button", name="Draft 1")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Filter by tag")).to_have_value(key)
    expect(page.locator("tbody tr")).to_have_count(2)
    by_api = http.get("/v1/experiments", params={"tag": key}).json()["experiments"]
    assert sorted(keys(page)) == sorted(one["key"] for one in by_api)
    assert http.get("/dashboard/experiments", params={"tag": "No Tag"}).status_code == 422


def test_columns_order_the_list(page: Page, http: httpx.Client, key: str) -> None:
    """One click one way, another the other way, a third as it was; the heading says which."""
    for name, better in (("b", 0.9), ("c", 0.45), ("a", 0.6)):
        create(http, f"{key}-{name}", name=f"{name.upper()} {key}", control="control", tags=[key])
        visit(http, f"{key}-{name}", {"control": 0.2, "variant": better}, visitors=120)
    page.goto(f"/?tag={key}")
    rows = page.locator("tbody tr")
    expect(rows.first).to_contain_text(f"A {key}")
    heading = page.get_by_role("columnheader", name="Lift")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(rows.first).to_contain_text(f"B {key}")
    down = keys(page)
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    expect(rows.last).to_contain_text(f"B {key}")
    assert keys(page) == down[::-1]
    heading.get_by_role("button").click()
    expect(heading).not_to_have_attribute("aria-sort", re.compile(".*"))
    page.get_by_role("columnheader", name="Experiment").get_by_role("button").click()
    expect(rows.first).to_contain_text(f"A {key}")
    expect(rows.last).to_contain_text(f"C {key}")
    assert "sort=name" in page.url
    http.post(f"/v1/experiments/{key}-c/pause")
    page.get_by_role("columnheader", name="Status").get_by_role("button").click()
    expect(rows.last).to_contain_text("Paused")
    assert http.get("/dashboard/experiments", params={"sort": "luck"}).status_code == 422


def test_every_column_says_what_it_counts(page: Page, http: httpx.Client, key: str) -> None:
    """A sentence for whoever points at a heading, and the time zone of all dates."""
    create(http, key)
    page.goto(f"/?text={key}")
    expect(page.locator("tbody tr")).to_have_count(1)
    meanings = [heading.get_attribute("title") for heading in page.locator("thead th").all()]
    assert len(meanings) == 9
    assert all(meaning and len(meaning) > 20 for meaning in meanings)
    expect(page.locator(".list-note")).to_contain_text("Times are in")


def test_a_click_anywhere_on_a_row_opens_the_experiment(page: Page, http: httpx.Client, key: str) -> None:
    """Also on the cells that say more to whoever points at them, but not on a tag."""
    create(http, key, tags=["by-click"])
    for column in ("Forecast", "Status"):
        page.goto(f"/?text={key}")
        page.locator(f"tbody td[data-label={column}]").click(force=True)  # the link may lie above it
        page.wait_for_url(f"**/experiments/{key}")
    page.goto(f"/?text={key}")
    expect(page.locator("td[data-label=Forecast]")).to_have_attribute("title", "Too early to tell")
    page.get_by_role("button", name="by-click").click()
    expect(page.get_by_label("Filter by tag")).to_have_value("by-click")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_an_address_that_makes_no_sense_shows_the_list(page: Page, http: httpx.Client, key: str) -> None:
    """An old bookmark or a typing error is no lost connection."""
    create(http, key)
    page.goto(f"/?text={key}&sort=luck&status=gone&tag=NO%20TAG&page=-3&colour=red")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("#connection")).to_have_text("Live")
