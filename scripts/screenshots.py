"""`make screenshots`: the dashboard in every state, light and dark, desktop and phone, into docs/screenshots/."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from scripts import demo, screenshot_states
from testing.browser import open_browser
from testing.server import free_port

PLACE = Path(__file__).parent.parent / "docs" / "screenshots"
DESKTOP, PHONE = ViewportSize(width=1280, height=860), ViewportSize(width=390, height=844)
_LEADING = "checkout-button"
_STATES = {
    "collecting": "onboarding-tour",
    "decided": "signup-headline",
    "harmful": "pricing-page",
    "concluded": "search-ranking",
    "forty-arms": "banner-images",
}
_MOST_BYTES = 400_000
# A page of the list computes its forecasts little by little.
_SETTLE_MS = 4_000


class Picture(NamedTuple):
    """One page on one screen."""

    name: str
    where: str
    screen: ViewportSize
    scheme: Literal["light", "dark"]
    full: bool = True
    """From top to bottom, or only what the screen shows?"""


def pictures() -> Iterator[Picture]:
    """The list and an experiment that leads on every screen in both schemes, and each other state once."""
    for screen, size in (("desktop", DESKTOP), ("phone", PHONE)):
        for scheme in ("light", "dark"):
            yield Picture(f"list-{screen}-{scheme}", "/", size, scheme)
            yield Picture(f"experiment-{screen}-{scheme}", f"/experiments/{_LEADING}", size, scheme)
    for state, key in _STATES.items():
        many = state == "forty-arms"
        screen_of_state = ViewportSize(width=1280, height=1400) if many else DESKTOP
        yield Picture(f"state-{state}", f"/experiments/{key}", screen_of_state, "light", full=not many)


def settle(page: Page) -> None:
    """Wait until everything is drawn."""
    page.wait_for_selector("main h1")
    page.wait_for_selector("#connection[data-state=live]")
    if "/experiments/" in page.url:
        page.locator(".chart svg[data-version]").nth(2).wait_for()
        page.wait_for_timeout(500)
    else:
        page.wait_for_timeout(_SETTLE_MS)


def photograph(browser: Browser, address: str, wanted: set[str]) -> None:
    """The pictures of these names, or all."""
    for name, where, screen, scheme, full in pictures():
        if wanted and not any(part in name for part in wanted):
            continue
        with browser.new_context(color_scheme=scheme, viewport=screen, base_url=address, timezone_id="Europe/Berlin") as context:
            page = context.new_page()
            page.goto(where)
            settle(page)
            taken = PLACE / f"{name}.png"
            page.screenshot(path=taken, full_page=full)
            if taken.stat().st_size > _MOST_BYTES:
                raise SystemExit(f"{taken} has more than {_MOST_BYTES:,} bytes.")


@contextmanager
def serving(database: Path, port: int) -> Iterator[str]:
    """A service on this database."""
    settings = {"BESTARM_DATABASE_URL": f"sqlite:///{database}", "BESTARM_LOG_LEVEL": "warning"}
    command = [sys.executable, "-m", "service", "serve", "--port", str(port)]
    service = subprocess.Popen(command, env=os.environ | settings)  # noqa: S603 - our own program
    address = f"http://127.0.0.1:{port}"
    try:
        demo.Demo(address).wait_until_ready(lambda: None)
        yield address
    finally:
        service.terminate()
        service.wait(30)


def main(wanted: set[str]) -> None:
    """Let visitors come to a service, make days of the seconds they took, and photograph another one on the same database."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bestarm-screenshots-") as folder:
        database, port = Path(folder) / "states.db", free_port()
        with serving(database, port) as address:
            screenshot_states.fill(address)
        screenshot_states.stretch(database)
        with serving(database, port) as address, sync_playwright() as playwright:
            browser = open_browser(playwright)
            photograph(browser, address, wanted)
            browser.close()


if __name__ == "__main__":
    main(set(sys.argv[1:]))
