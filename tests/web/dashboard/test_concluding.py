"""Concluding with open eyes, and what may follow: reopen, duplicate, delete."""

from __future__ import annotations

import re

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.web.dashboard.traffic import create, visit

ARMS = [{"key": "grey", "name": "Grey"}, {"key": "blue", "name": "Blue"}, {"key": "green", "name": "Green"}]
WORTH = {"grey": 0.1, "blue": 0.2, "green": 0.5}


def status_of(http: httpx.Client, key: str) -> str:
    """Where the experiment is in its life."""
    return str(http.get(f"/v1/experiments/{key}").json()["status"])


def ask_to_conclude(page: Page, key: str) -> Locator:
    """The question that is asked before an experiment is concluded."""
    page.goto(f"/experiments/{key}")
    page.get_by_role("button", name="Conclude", exact=True).click()
    return page.get_by_role("dialog")


def test_the_dialog_says_what_is_known_of_the_chosen_arm(page: Page, http: httpx.Client, key: str) -> None:
    """Arms by their means, only the decided one recommended; verdict, lift, loss, the others and the wait follow the choice."""
    create(http, key, arms=ARMS, control="grey")
    visit(http, key, WORTH, visitors=1_000)
    dialog = ask_to_conclude(page, key)
    choice = dialog.get_by_label("Arm to serve")
    assert [words.split(",")[0] for words in choice.locator("option").all_inner_texts()] == ["Green", "Blue", "Grey"]
    expect(choice.locator("option", has_text="recommended")).to_have_count(1)
    expect(choice).to_have_value("green")
    eyes = dialog.locator(".open-eyes")
    expect(eyes).to_contain_text("Decided: better than every other active arm, at 95% confidence.")
    expect(eyes).to_contain_text(re.compile(r"\+\d+\.\d points on Grey \(\+\d+\.\d to \+\d+\.\d\), \d\.\d\d"))
    expect(eyes).to_contain_text(re.compile(r"Blue \d+\.\d points behind, shown; Grey \d+\.\d points behind, shown"))
    expect(eyes).to_contain_text("There is nothing to wait for")
    choice.select_option("grey")
    expect(eyes).to_contain_text("Decided for Green, and not for this arm.")
    expect(eyes).to_contain_text("It is the control")
    expect(eyes).to_contain_text("a visitor, by which Green is ahead")
    found = Axe().run(page, context="dialog")
    assert not found.response["violations"], found.generate_report()


def test_without_a_verdict_nothing_is_recommended_and_the_loss_is_told(page: Page, http: httpx.Client, key: str) -> None:
    """The leader is chosen first and called no more than that; what may be lost and when the verdict would be there are said."""
    create(http, key, arms=ARMS)
    visit(http, key, {"grey": 0.2, "blue": 0.25, "green": 0.28}, visitors=300)
    now = http.get(f"/v1/experiments/{key}/recommendation").json()
    assert now["verdict"]["state"] == "leading"
    dialog = ask_to_conclude(page, key)
    expect(dialog.locator("option", has_text="recommended")).to_have_count(0)
    expect(dialog.get_by_label("Arm to serve")).to_have_value(now["arm"])
    expect(dialog).to_contain_text("Not decided. It leads")
    expect(dialog).to_contain_text("a visitor, averaged over what may yet turn out")
    expect(dialog).to_contain_text("The verdict: ")
    expect(dialog).not_to_contain_text("undone")


def test_a_loser_needs_a_second_word(page: Page, http: httpx.Client, key: str) -> None:
    """To serve an arm that another one beats is asked again, in words; no changes nothing, yes is obeyed and shown."""
    create(http, key, arms=ARMS, control="grey")
    visit(http, key, WORTH, visitors=1_000)
    dialog = ask_to_conclude(page, key)
    dialog.get_by_label("Arm to serve").select_option("blue")
    dialog.get_by_role("button", name="Conclude", exact=True).click()
    second = page.get_by_role("dialog", name="Serve Blue although Green is better?")
    expect(second).to_contain_text("It is shown that Green is better than Blue")
    second.get_by_role("button", name="Cancel").click()
    expect(second).to_have_count(0)
    assert status_of(http, key) == "running"
    dialog.get_by_role("button", name="Conclude", exact=True).click()
    second.get_by_role("button", name="Serve Blue all the same").click()
    expect(page.locator(".pill")).to_have_text("Concluded")
    expect(page.locator("tr[data-arm=blue] .tags")).to_contain_text("served")
    expect(page.locator("tr[data-arm=green] .tags")).to_contain_text("best mean")
    expect(page.locator(".arms")).not_to_contain_text("winner")
    expect(page.locator("[data-answer=arm]")).to_contain_text("worse than that of Green, the best")
    expect(page.locator(".log")).to_contain_text("Concluded with Blue")


def test_its_own_rule_is_named_as_who_concluded(page: Page, http: httpx.Client, key: str) -> None:
    """An experiment that ended by its rule says so; what people did last is told apart from it."""
    create(http, key, arms=ARMS, conclude_when={"separated": True})
    page.goto(f"/experiments/{key}")
    visit(http, key, WORTH, visitors=1_000)
    expect(page.locator(".pill")).to_have_text("Concluded")
    expect(page.locator("[data-answer=stop]")).to_contain_text("By its own rule. Everyone gets Green.")
    expect(page.locator("[data-answer=change]")).to_contain_text("Created")
    expect(page.locator(".log")).to_contain_text("Concluded with Green, by its own rule")
    page.get_by_role("button", name="Findings").click()
    expect(page.locator(".log")).to_contain_text("Shown: Green is better than Grey")


def test_a_conclusion_can_be_taken_back(page: Page, http: httpx.Client, key: str) -> None:
    """Reopen asks, pauses it again, and the log says it."""
    create(http, key)
    http.post(f"/v1/experiments/{key}/conclude", json={"arm": "control"})
    page.goto(f"/experiments/{key}")
    page.get_by_role("button", name="Reopen").click()
    expect(page.get_by_role("dialog")).to_contain_text("asks are refused until you resume it")
    page.get_by_role("dialog").get_by_role("button", name="Reopen").click()
    expect(page.locator(".pill")).to_have_text("Paused")
    expect(page.locator(".log")).to_contain_text("Reopened: paused again")


def test_a_duplicate_is_a_draft_under_another_key(page: Page, http: httpx.Client, key: str) -> None:
    """A key that is taken is said beside the field; another one leads to the draft."""
    create(http, key, tags=["shop"])
    create(http, f"{key}-2")
    page.goto(f"/experiments/{key}")
    page.get_by_role("button", name="Duplicate").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Key of the duplicate")).to_have_value(f"{key}-2")
    dialog.get_by_role("button", name="Duplicate").click()
    expect(dialog.locator(".field-error")).to_contain_text(f"{key}-2")
    dialog.get_by_label("Key of the duplicate").fill(f"{key}-3")
    expect(dialog.locator(".field-error")).to_be_hidden()
    dialog.get_by_role("button", name="Duplicate").click()
    page.wait_for_url(f"**/experiments/{key}-3")
    expect(page.locator(".pill")).to_have_text("Draft")
    expect(page.locator(".log")).to_contain_text(f"Created as a duplicate of {key}")
    assert http.get(f"/v1/experiments/{key}-3").json()["tags"] == ["shop"]


@pytest.mark.parametrize("archived", [False, True])
def test_a_draft_or_an_archived_experiment_can_be_deleted(page: Page, http: httpx.Client, key: str, *, archived: bool) -> None:
    """A draft goes after a question, an archived one only when its key is typed; then the list is shown."""
    create(http, key, status="running" if archived else "draft")
    if archived:
        http.post(f"/v1/experiments/{key}/conclude", json={"arm": "control"})
        http.post(f"/v1/experiments/{key}/archive")
    page.goto(f"/experiments/{key}")
    expect(page.locator(".chart [data-version]")).to_have_count(3)  # or its pictures would be asked for when it is gone
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Nothing brings it back")
    if archived:
        dialog.get_by_label("Type its key").fill("another")
        dialog.get_by_role("button", name="Delete").click()
        expect(dialog.locator(".field-error")).to_contain_text("This is not its key")
        assert status_of(http, key) == "archived"
        dialog.get_by_label("Type its key").fill(key)
    dialog.get_by_role("button", name="Delete").click()
    page.wait_for_url(re.compile(r"/$"))
    assert http.get(f"/v1/experiments/{key}").status_code == 404


def test_a_running_experiment_cannot_be_deleted_from_its_page(page: Page, http: httpx.Client, key: str) -> None:
    """There is no such button where the API would refuse."""
    create(http, key)
    page.goto(f"/experiments/{key}")
    expect(page.get_by_role("button", name="Duplicate")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
