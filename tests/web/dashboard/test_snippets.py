"""Code to paste: it works as it stands, in the empty state and behind its button."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.web.dashboard.traffic import create, visit


def run(language: str, code: str, page: Page) -> None:
    """Run it as a reader would; TypeScript without its types is what a browser runs."""
    if language == "TypeScript":
        plain = code.replace(": string", "").replace(": object", "")
        page.evaluate(f"async () => {{ {plain} }}")
        return
    command = ["bash", "-ec", code] if language == "curl" else [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", ["curl", "Python", "TypeScript"])
@pytest.mark.parametrize(
    "settings", [{}, {"sticky": True, "reward": {"kind": "bounded", "min": 0, "max": 5}}], ids=["plain", "sticky"]
)
def test_a_snippet_asks_and_tells(page: Page, http: httpx.Client, key: str, language: str, settings: dict[str, Any]) -> None:
    """Pasted as it is, each makes one draw and tells its reward; then the first steps are over."""
    create(http, key, **settings)
    page.goto(f"/experiments/{key}")
    steps = page.locator(".first-steps")
    steps.get_by_role("button", name=language).click()
    run(language, steps.locator("code").inner_text(), page)
    now = http.get(f"/v1/experiments/{key}/recommendation").json()
    assert (now["draws"], now["observations"]) == (1, 1)
    expect(steps).to_be_hidden()


def test_the_snippets_stay_behind_a_button_and_are_copied(
    page: Page, screen: BrowserContext, http: httpx.Client, key: str
) -> None:
    """Once there is traffic they are asked for by a button; one press puts a snippet on the clipboard."""
    screen.grant_permissions(["clipboard-read", "clipboard-write"])
    create(http, key)
    visit(http, key, {"control": 0.5, "variant": 0.5})
    page.goto(f"/experiments/{key}")
    expect(page.locator(".first-steps")).to_be_hidden()
    page.get_by_role("button", name="Code").click()
    dialog = page.get_by_role("dialog", name="Ask and tell")
    dialog.get_by_role("button", name="Python").click()
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog).to_contain_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert f"/v1/experiments/{key}" in copied
    assert copied.startswith("import httpx")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Code")).to_be_focused()
