"""The Chromium in which the dashboard is tested and photographed."""

from __future__ import annotations

import shutil

from playwright.sync_api import Browser, Playwright
from playwright.sync_api import Error as PlaywrightError

_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def open_browser(playwright: Playwright) -> Browser:
    """The system's Chromium, else the tool's own; fails loudly if there is none."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    try:
        return playwright.chromium.launch(executable_path=found, args=_ARGUMENTS)
    except PlaywrightError as missing:
        raise RuntimeError("The dashboard needs Chromium: `make browser` installs it.") from missing
