"""The settings dialog: all that the API patches, only what was changed, and errors in the units that were typed."""

from __future__ import annotations

from typing import Any

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.web.dashboard.traffic import create


def edit(page: Page, key: str) -> Locator:
    """The dialog, open."""
    page.goto(f"/experiments/{key}")
    page.get_by_role("button", name="Edit settings").click()
    return page.get_by_role("dialog")


def save(dialog: Locator) -> None:
    """Press the button and see the dialog go."""
    dialog.get_by_role("button", name="Save settings").click()
    expect(dialog).to_have_count(0)


def stored(http: httpx.Client, key: str, *names: str) -> dict[str, Any]:
    """Some settings as the API has them."""
    experiment = http.get(f"/v1/experiments/{key}").json()
    return {name: experiment[name] for name in names}


def last_patch(http: httpx.Client, key: str) -> dict[str, Any]:
    """What the last patch changed."""
    events = http.get(f"/v1/experiments/{key}/events", params={"kind": "patch"}).json()["events"]
    return dict(events[0]["details"]["after"])


def test_every_setting_of_a_running_experiment_can_be_changed(page: Page, http: httpx.Client, key: str) -> None:
    """Name, description, owner, tags, control, worthwhile, confidence, rule and expiry, and the page shows them."""
    create(http, key)
    dialog = edit(page, key)
    dialog.get_by_label("Name").fill("New name")
    dialog.get_by_label("Description").fill("What for")
    dialog.get_by_label("Owner").fill("ann@shop.example")
    dialog.get_by_label("Tags").fill("shop, q4")
    dialog.get_by_label("Control").select_option("control")
    dialog.get_by_label("Worth it from").fill("1.5")
    dialog.get_by_label("Confidence").fill("99.9")
    dialog.get_by_label("Conclude by itself?").select_option("beats_control")
    dialog.get_by_label("After at least so many observations").fill("500")
    dialog.get_by_label("When no reward comes").select_option("count")
    dialog.get_by_label("After", exact=True).fill("2")
    dialog.get_by_label("Unit").select_option("days")
    dialog.get_by_label("Count it as").fill("0")
    save(dialog)
    wanted = {
        "name": "New name",
        "description": "What for",
        "owner": "ann@shop.example",
        "tags": ["shop", "q4"],
        "control": "control",
        "worthwhile": 0.015,
        "confidence": 0.999,
        "conclude_when": {"beats_control": True, "min_observations": 500},
        "expiry": {"after_seconds": 172_800, "reward": 0},
    }
    assert stored(http, key, *wanted) == wanted
    expect(page.get_by_role("heading", level=1)).to_have_text("New name")
    facts = page.locator("[aria-labelledby=settings-title]")
    for words in ("control, live today", "1.5 points", "99.9%", "when an arm beats the control, after 500", "after 2 days", "q4"):
        expect(facts).to_contain_text(words)


def test_only_what_was_changed_is_sent(page: Page, http: httpx.Client, key: str) -> None:
    """Opening and saving writes nothing; a changed field is the only one that the log tells."""
    settings: dict[str, Any] = {
        "conclude_when": {"decided": True, "min_observations": 3},
        "worthwhile": 0.07,
        "confidence": 0.999,
        "expiry": {"after_seconds": 90, "reward": None},
        "owner": "bo",
    }
    create(http, key, **settings)
    save(edit(page, key))
    assert http.get(f"/v1/experiments/{key}/events", params={"kind": "patch"}).json()["events"] == []
    dialog = edit(page, key)
    dialog.get_by_label("Owner").fill("")
    save(dialog)
    assert last_patch(http, key) == {"owner": None}
    expect(page.locator(".log")).to_contain_text("Owner bo → none")


def test_a_draft_s_policy_reward_and_stickiness_can_be_changed(page: Page, http: httpx.Client, key: str) -> None:
    """Until it is started; a running experiment does not offer them."""
    create(http, key, status="draft", policy={"kind": "simple_tracking", "seed": 2**53 - 1})
    save(edit(page, key))
    assert http.get(f"/v1/experiments/{key}/events", params={"kind": "patch"}).json()["events"] == []
    dialog = edit(page, key)
    dialog.get_by_label("Reward", exact=True).select_option("bounded")
    dialog.get_by_label("Goal").select_option("minimize")
    dialog.get_by_label("Smallest").fill("0")
    dialog.get_by_label("Largest").fill("5")
    dialog.get_by_label("Policy").select_option("almost_tracking")
    dialog.get_by_label("Batch size").fill("20")
    dialog.get_by_label("A visitor keeps their arm").check()
    save(dialog)
    changed = stored(http, key, "reward", "policy", "sticky")
    assert changed["reward"] == {"kind": "bounded", "goal": "minimize", "min": 0, "max": 5}
    assert (changed["policy"]["kind"], changed["policy"]["batch_size"], changed["policy"]["seed"]) == (
        "almost_tracking",
        20,
        2**53 - 1,
    )
    assert changed["sticky"] is True
    http.post(f"/v1/experiments/{key}/start")
    expect(page.locator(".pill")).to_have_text("Running")
    expect(edit(page, key).get_by_label("Policy")).to_have_count(0)


def test_errors_are_told_in_the_units_typed_and_go_when_mended(page: Page, http: httpx.Client, key: str) -> None:
    """Percent, points and days, as in the field; each message goes when its field changes, and nothing typed is lost."""
    create(http, key)
    dialog = edit(page, key)
    dialog.get_by_label("Confidence").fill("100")
    dialog.get_by_label("Worth it from").fill("0")
    dialog.get_by_label("Owner").fill("kept")
    dialog.get_by_label("When no reward comes").select_option("drop")
    dialog.get_by_label("After", exact=True).fill("99999")
    dialog.get_by_label("Unit").select_option("days")
    dialog.get_by_role("button", name="Save settings").click()

    def error(pointer: str) -> Locator:
        return dialog.locator(f"[data-pointer='{pointer}'] ~ .field-error")

    expect(error("/confidence")).to_contain_text("less than 100%")
    expect(error("/worthwhile")).to_contain_text("greater than 0 points")
    expect(error("/expiry/after_seconds")).to_contain_text("3,650 days")
    dialog.get_by_label("Confidence").fill("90")
    expect(error("/confidence")).to_be_hidden()
    expect(error("/worthwhile")).to_be_visible()
    dialog.get_by_label("Worth it from").fill("")
    dialog.get_by_label("After", exact=True).fill("1")
    save(dialog)
    assert stored(http, key, "confidence", "owner", "worthwhile") == {"confidence": 0.9, "owner": "kept", "worthwhile": None}
