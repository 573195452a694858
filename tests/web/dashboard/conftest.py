"""A browser, and a service of its own to look at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from testing.browser import open_browser
from testing.server import Server


@pytest.fixture(scope="package")
def browser(sqlite_template: Path) -> Iterator[Browser]:
    """One browser for all tests. It holds this thread's event loop, so what needs one of its own comes before or elsewhere."""
    assert sqlite_template
    with sync_playwright() as playwright:
        opened = open_browser(playwright)
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def database(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the shared service; the dashboard is the same on both engines."""
    copied = tmp_path_factory.mktemp("dashboard") / "bestarm.db"
    shutil.copy(sqlite_template, copied)
    return copied


@pytest.fixture(scope="package")
def dashboard(database: Path) -> Iterator[Server]:
    """A running service."""
    with Server(f"sqlite:///{database}", measured=True) as running:
        yield running


@pytest.fixture(scope="package")
def http(dashboard: Server) -> Iterator[httpx.Client]:
    """The API of that service."""
    with dashboard.client() as client:
        yield client


@pytest.fixture
def screen(browser: Browser, dashboard: Server) -> Iterator[BrowserContext]:
    """A window of its own."""
    with browser.new_context(base_url=dashboard.url, viewport={"width": 1280, "height": 900}) as opened:
        opened.set_default_timeout(10_000)
        yield opened


@pytest.fixture
def page(screen: BrowserContext) -> Iterator[Page]:
    """A page on which nothing may go wrong: no error, no refused resource, no violation of the policy."""
    opened = screen.new_page()
    troubles: list[str] = []
    opened.on("console", lambda message: troubles.append(_said(message)) if message.type in {"error", "warning"} else None)
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    yield opened
    expected = {trouble for trouble in troubles if " 409 " in trouble or " 422 " in trouble}  # the tests provoke these
    assert set(troubles) <= expected


def _said(message: ConsoleMessage) -> str:
    return f"{message.text} {message.location.get('url')}"
