"""The table of arms: lift first, sorted as one likes, every column explained, and never in the way of what comes below it."""

from __future__ import annotations

import re

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.web.dashboard.traffic import create, visit

ARMS = [{"key": "grey", "name": "Grey"}, {"key": "blue", "name": "Blue"}, {"key": "green", "name": "Green"}]


def order(page: Page) -> list[str]:
    """The arms as they stand."""
    return [str(row.get_attribute("data-arm")) for row in page.locator("tr[data-arm]").all()]


def test_lift_evidence_control_and_harm_are_marked(page: Page, http: httpx.Client, key: str) -> None:
    """The control is marked, each other arm has its lift with interval and ratio, a worse one is harmful, a beaten one shown."""
    create(http, key, arms=ARMS, control="grey")
    visit(http, key, {"grey": 0.5, "blue": 0.1, "green": 0.52}, visitors=1_200)
    page.goto(f"/experiments/{key}")
    grey, blue = page.locator("tr[data-arm=grey]"), page.locator("tr[data-arm=blue]")
    expect(grey.locator(".tags")).to_contain_text("control")
    expect(blue.locator(".tags")).to_contain_text("harmful")
    expect(blue.locator("[data-column=evidence]")).to_have_text("shown")
    lift = blue.locator("[data-column=lift]")
    expect(lift).to_have_text(re.compile("^\u2212\\d+\\.\\d points 0\\.\\d\\d\u00d7\u2212\\d+\\.\\d to \u2212\\d+\\.\\d$"))
    expect(page.locator(".signs")).to_contain_text("Blue is harmful")


def test_columns_are_sorted_by_mouse_and_keyboard(page: Page, http: httpx.Client, key: str) -> None:
    """A heading sorts, turns around, and lets go; the direction is told to readers of the page."""
    create(http, key, arms=ARMS)
    visit(http, key, {"grey": 0.9, "blue": 0.1, "green": 0.5}, visitors=200)
    page.goto(f"/experiments/{key}")
    expect(page.locator("tr[data-arm]")).to_have_count(3)
    best_first = order(page)
    assert best_first == ["grey", "green", "blue"]
    heading = page.get_by_role("columnheader", name="Arm", exact=True)
    page.get_by_role("button", name="Arm", exact=True).click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert order(page) == ["blue", "green", "grey"]
    page.get_by_role("button", name="Mean", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("th[data-column=mean]")).to_have_attribute("aria-sort", "descending")
    expect(heading).not_to_have_attribute("aria-sort", "ascending")
    assert order(page) == best_first
    page.keyboard.press("Enter")
    assert order(page) == ["blue", "green", "grey"]
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort]")).to_have_count(0)
    assert order(page) == best_first


def test_every_column_says_what_it_counts(page: Page, http: httpx.Client, key: str) -> None:
    """Each heading has a description that shows on focus, and the list below the table has them all."""
    create(http, key, arms=ARMS, control="grey")
    page.goto(f"/experiments/{key}")
    headings = page.locator(".arms th button")
    expect(headings).to_have_count(8)
    expect(page.locator(".meanings dt")).to_have_count(8)
    for heading in headings.all():
        tip = page.locator(f"#{heading.get_attribute('aria-describedby')}")
        assert len(tip.inner_text()) == 0, "hidden before it is asked for"
        heading.focus()
        expect(tip).to_be_visible()
        assert len(tip.inner_text()) > 20
    page.get_by_text("What the columns count").click()
    expect(page.locator(".meanings")).to_contain_text("less that of the control")
    found = Axe().run(page, context=".arms-section")
    assert not found.response["violations"], found.generate_report()


def test_numbers_of_a_column_keep_their_digits(page: Page, http: httpx.Client, key: str) -> None:
    """13.90 and 11.00, not 13.9 and 11; also in the interval."""
    create(http, key, reward={"kind": "bounded", "min": 0, "max": 20})
    told = [{"arm": "control", "reward": 11}] * 300 + [{"arm": "variant", "reward": 13.9}] * 300
    http.post(f"/v1/experiments/{key}/observations", json={"observations": told})
    page.goto(f"/experiments/{key}")
    expect(page.locator("tr[data-arm=control] [data-column=mean]")).to_have_text(re.compile(r"^11\.00\d+\.\d\d to \d+\.\d\d$"))
    expect(page.locator("tr[data-arm=variant] [data-column=mean]")).to_have_text(re.compile(r"^13\.90\d+\.\d\d to \d+\.\d\d$"))
    expect(page.locator("tr[data-arm=control] [data-column=lift]")).to_contain_text("\u22122.90")


def test_share_bars_are_on_a_scale_to_a_hundred(page: Page, http: httpx.Client, key: str) -> None:
    """Half of the traffic is half of the bar."""
    create(http, key, policy={"kind": "uniform", "seed": 1})
    visit(http, key, {"control": 0.5, "variant": 0.5}, visitors=400)
    page.goto(f"/experiments/{key}")
    row = page.locator("tr[data-arm=control]")
    expect(row.locator("[data-column=share]")).to_contain_text("50.0%")
    share = next(
        arm["share"] for arm in http.get(f"/v1/experiments/{key}/recommendation").json()["arms"] if arm["arm"] == "control"
    )
    expect(row.locator(".share .fill")).to_be_visible()
    page.wait_for_function("document.getAnimations().length === 0")
    filled, whole = (row.locator(part).bounding_box() for part in (".share .fill", ".share"))
    assert filled is not None
    assert whole is not None
    assert abs(filled["width"] / whole["width"] - share) < 0.02


def test_forty_arms_are_folded_and_the_charts_stay_near(page: Page, http: httpx.Client, key: str) -> None:
    """Ten rows, the control among them, then the charts; all of them on demand."""
    arms = [{"key": f"arm-{number:02}"} for number in range(40)]
    create(http, key, arms=arms, control="arm-00")
    visit(http, key, {arm["key"]: index / 50 for index, arm in enumerate(arms)}, visitors=800)
    page.goto(f"/experiments/{key}")
    expect(page.locator("tr[data-arm]")).to_have_count(10)
    expect(page.locator("tr[data-arm=arm-00]")).to_be_visible()
    charts = page.locator("section.charts").bounding_box()
    assert charts is not None
    assert charts["y"] < 2 * 900, "within two screens"
    page.get_by_role("button", name="Show all 40 arms").click()
    expect(page.locator("tr[data-arm]")).to_have_count(40)
    page.get_by_role("button", name="Show the first 10 only").click()
    expect(page.locator("tr[data-arm]")).to_have_count(10)


def test_overlapping_intervals_beside_a_verdict_are_explained(page: Page, http: httpx.Client, key: str) -> None:
    """As soon as it is decided the two intervals still overlap; a sentence at the table says why both are right."""
    create(http, key)
    for turn in range(30):
        visit(http, key, {"control": 0.3, "variant": 0.5}, seed=turn)
        now = http.get(f"/v1/experiments/{key}/recommendation").json()
        if now["verdict"]["state"] == "decided":
            break
    low, high = sorted(arm["interval"] for arm in now["arms"])
    assert (now["verdict"]["state"], low[1] > high[0]) == ("decided", True)
    page.goto(f"/experiments/{key}")
    expect(page.locator(".notes")).to_contain_text("The intervals of control and variant overlap")
    expect(page.locator(".notes")).to_contain_text("one test of the pair is sharper")


def test_a_share_that_is_off_its_target_is_explained(page: Page, http: httpx.Client, key: str) -> None:
    """Almost Tracking plans batches, and shares count the past: both are said where the numbers stand."""
    create(http, key, arms=ARMS, policy={"kind": "almost_tracking", "seed": 3, "sharpness": 3})
    visit(http, key, {"grey": 0.6, "blue": 0.02, "green": 0.55}, visitors=60)
    far = [
        arm
        for arm in http.get(f"/v1/experiments/{key}/recommendation").json()["arms"]
        if abs(arm["share"] - arm["target_share"]) > 0.02
    ]
    assert far
    page.goto(f"/experiments/{key}")
    expect(page.locator(".notes")).to_contain_text("Almost Tracking plans whole batches")
