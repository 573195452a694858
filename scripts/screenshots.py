"""`make screenshots`: the dashboard with the demo's visitors, light and dark, desktop and phone, into docs/screenshots/."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize, sync_playwright

from scripts import demo
from testing.browser import open_browser

PLACE = Path(__file__).parent.parent / "docs" / "screenshots"
PAGES = {"list": "/", "experiment": "/experiments/checkout-button"}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SCREENS = {"desktop": (1280, 860), "phone": (390, 844)}
_PORT = "8791"
_SECONDS = 60
_MOST_BYTES = 300_000


def settle(page: Page) -> None:
    """Wait until everything is drawn."""
    page.wait_for_selector("main h1")
    page.wait_for_selector("#connection[data-state=live]")
    if "/experiments/" in page.url:
        page.locator(".chart img").nth(2).wait_for()
    page.wait_for_timeout(1_000)


def photograph(address: str) -> None:
    """Every page on every screen in both schemes."""
    with sync_playwright() as playwright:
        browser = open_browser(playwright)
        for screen, (width, height) in SCREENS.items():
            for scheme in SCHEMES:
                viewport = ViewportSize(width=width, height=height)
                with browser.new_context(color_scheme=scheme, viewport=viewport, base_url=address) as context:
                    for name, where in PAGES.items():
                        page = context.new_page()
                        page.goto(where)
                        settle(page)
                        taken = PLACE / f"{name}-{screen}-{scheme}.png"
                        page.screenshot(path=taken, full_page=True)
                        if taken.stat().st_size > _MOST_BYTES:
                            raise SystemExit(f"{taken} has more than {_MOST_BYTES:,} bytes.")
                        page.close()
        browser.close()


def main() -> None:
    """Start the service, let visitors come for a while, conclude one experiment, photograph."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bestarm-screenshots-") as folder:
        settings = {"BESTARM_DATABASE_URL": f"sqlite:///{Path(folder) / 'demo.db'}", "BESTARM_LOG_LEVEL": "warning"}
        command = [sys.executable, "-m", "service", "serve", "--port", _PORT]
        service = subprocess.Popen(command, env=os.environ | settings)  # noqa: S603 - our own program
        address = f"http://127.0.0.1:{_PORT}"
        try:
            demo.run(address, _SECONDS)
            api = demo.Demo(address)
            arms = [{"key": "plain", "name": "Plain"}, {"key": "video", "name": "With a video"}]
            api.call("POST", "/v1/experiments", {"key": "landing-page", "name": "Landing page", "arms": arms, "status": "draft"})
            api.call("POST", "/v1/experiments/search-ranking/conclude", {})
            photograph(address)
        finally:
            service.terminate()
            service.wait(30)


if __name__ == "__main__":
    main()
