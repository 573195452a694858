"""A person's way through the dashboard: create, watch, pause, resume, add and disable an arm, conclude, see what is served."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Page, expect

from tests.web.dashboard.traffic import create, visit

WORTH = {"control": 0.1, "variant": 0.6, "third": 0.3}


def confirm(page: Page, button: str, action: str, says: str) -> None:
    """Press a button, read the question, agree."""
    page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(says)
    dialog.get_by_role("button", name=action, exact=True).click()
    expect(dialog).to_have_count(0)


def test_an_experiment_lives_its_whole_life_on_the_dashboard(page: Page, http: httpx.Client) -> None:
    """Every step of the life is possible from the page, and the page shows each without being loaded again."""
    page.goto("/new")
    page.get_by_label("Name").first.fill("Sign-up page")
    expect(page.get_by_label("Key").first).to_have_value("sign-up-page")
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url("**/experiments/sign-up-page")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign-up page")
    expect(page.locator("#connection")).to_have_text("Live")
    expect(page.locator(".headline")).not_to_be_empty()

    visit(http, "sign-up-page", WORTH)
    variant = page.locator("tr[data-arm=variant]")
    expect(page.locator(".figures")).to_contain_text("40", timeout=2_000)
    expect(variant).to_contain_text("leads")
    expect(page.locator(".chart svg[data-version]")).to_have_count(3)

    confirm(page, "Pause", "Pause", "asks are refused")
    expect(page.locator(".pill")).to_have_text("Paused")
    assert http.post("/v1/experiments/sign-up-page/assignments", json={}).status_code == 409
    confirm(page, "Resume", "Resume", "Visitors get arms again")
    expect(page.locator(".pill")).to_have_text("Running")

    page.get_by_role("button", name="Add arm").click()
    page.get_by_label("Key").fill("third")
    page.get_by_label("Name").fill("A third way")
    page.get_by_label("Floor").fill("10")
    page.get_by_role("dialog").get_by_role("button", name="Add arm").click()
    expect(page.locator("tr[data-arm=third]")).to_contain_text("A third way")
    assert http.get("/v1/experiments/sign-up-page").json()["arms"][2]["min_share"] == 0.1
    page.get_by_role("button", name="Edit A third way").click()
    expect(page.get_by_label("Floor")).to_have_value("10")
    page.get_by_label("Floor").fill("5")
    page.get_by_role("button", name="Save arm").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    confirm(page, "Disable A third way", "Disable arm", "no longer drawn")
    expect(page.locator("tr[data-arm=third]")).to_contain_text("disabled")
    confirm(page, "Enable A third way", "Enable arm", "drawn again")
    expect(page.locator("tr[data-arm=third]")).not_to_contain_text("disabled")

    confirm(page, "Conclude", "Conclude", "you can reopen it")
    expect(page.locator(".pill")).to_have_text("Concluded")
    expect(variant).to_contain_text("served")
    served = http.post("/v1/experiments/sign-up-page/assignments", json={}).json()
    assert (served["arm"], served["reason"]) == ("variant", "concluded")
    confirm(page, "Archive", "Archive", "frozen")
    expect(page.locator(".pill")).to_have_text("Archived")
    expect(page.locator(".lifecycle button")).to_have_count(0)
    log = page.locator(".log")
    for words in ("Created", "Paused", "Resumed", "Arm third added", "Arm third disabled", "Concluded with variant", "Archived"):
        expect(log).to_contain_text(words)


def test_cancel_changes_nothing(page: Page, http: httpx.Client, key: str) -> None:
    """A question that is answered with no, or with Escape, leaves the experiment as it was and the focus where it was."""
    create(http, key, status="draft")
    page.goto(f"/experiments/{key}")
    page.get_by_role("button", name="Start").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Start")).to_be_focused()
    assert http.get(f"/v1/experiments/{key}").json()["status"] == "draft"


def test_wrong_input_shows_its_message_beside_the_field(page: Page, http: httpx.Client, key: str) -> None:
    """Whatever the API refuses stands beside the field that it is about, and nothing typed is lost."""
    create(http, key)
    page.goto("/new")
    page.get_by_label("Name").first.fill("A test")
    page.get_by_label("Key").first.fill("Not A Key")
    page.get_by_label("Confidence").fill("120")
    page.get_by_label("Floor").nth(1).fill("many")
    page.get_by_role("button", name="Create experiment").click()
    expect(page.locator("[data-pointer='/key'] ~ .field-error")).to_contain_text("lower-case letters")
    expect(page.locator("[data-pointer='/confidence'] ~ .field-error")).to_contain_text("less than 100%")
    expect(page.locator("[data-pointer='/arms/1/min_share'] ~ .field-error")).to_contain_text("valid number")
    expect(page.get_by_label("Key").first).to_be_focused()
    expect(page.get_by_label("Key").first).to_have_attribute("aria-invalid", "true")

    page.get_by_label("Key").first.fill(key)
    page.get_by_label("Confidence").fill("95")
    page.get_by_label("Floor").nth(1).fill("0")
    page.get_by_label("Value").first.fill("green")
    page.get_by_role("button", name="Create experiment").click()
    expect(page.locator("[data-pointer='/arms/0/value'] ~ .field-error")).to_contain_text("not JSON")
    page.get_by_label("Value").first.fill('"green"')
    page.get_by_role("button", name="Create experiment").click()
    expect(page.locator("[data-pointer='/key'] ~ .field-error")).to_contain_text(key)
    page.get_by_label("Key").first.fill(f"{key}-b")
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url(re.compile(f"/experiments/{key}-b$"))
    assert http.get(f"/v1/experiments/{key}-b").json()["arms"][0]["value"] == "green"


def test_a_refused_step_says_why(page: Page, http: httpx.Client, key: str) -> None:
    """A step that somebody else made impossible meanwhile shows the API's reason in the dialog."""
    create(http, key)
    page.goto(f"/experiments/{key}")
    page.get_by_role("button", name="Conclude").click()
    http.post(f"/v1/experiments/{key}/conclude", json={"arm": "control"})
    page.get_by_label("Arm to serve").select_option("variant")
    page.get_by_role("dialog").get_by_role("button", name="Conclude").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("concluded")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".pill")).to_have_text("Concluded")
