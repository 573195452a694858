"""A page that is open: it moves, it says when it cannot, it comes back, and it rests while nobody looks."""

from __future__ import annotations

import shutil
import signal
import time
from functools import partial
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, Request, expect

from testing.server import Server, free_port
from tests.web.dashboard.traffic import create, visit

pytestmark = pytest.mark.serial
WORTH = {"control": 0.2, "variant": 0.7}
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def _note(asked: list[str], request: Request) -> None:
    asked.append(request.url)


def test_the_list_moves_within_two_seconds(page: Page, http: httpx.Client, key: str) -> None:
    """Draws, leader and status change on the list while it is open."""
    create(http, key)
    page.goto(f"/?text={key}")
    row = page.locator("tbody tr")
    expect(row).to_contain_text("none yet")
    visit(http, key, WORTH)
    expect(row).to_contain_text("variant", timeout=2_000)
    expect(row).to_contain_text("40")
    http.post(f"/v1/experiments/{key}/pause")
    expect(row).to_contain_text("Paused", timeout=2_000)


def test_an_experiment_moves_within_two_seconds(page: Page, http: httpx.Client, key: str) -> None:
    """Numbers and pictures change on the experiment's page, again and again."""
    create(http, key)
    page.goto(f"/experiments/{key}")
    expect(page.locator("#connection")).to_have_text("Live")
    for turn in range(1, 4):
        visit(http, key, WORTH, seed=turn)
        expect(page.locator(".figures")).to_contain_text(str(40 * turn), timeout=2_000)
    version = http.get(f"/v1/experiments/{key}").json()["version"]
    # Or a newer one: something may have been found out meanwhile.
    drawn = (
        "(version) => [...document.querySelectorAll('.chart svg')].filter((one) => one.dataset.version >= version).length === 3"
    )
    page.wait_for_function(drawn, arg=version, timeout=4_000)


def test_without_streams_the_page_polls(browser: Browser, dashboard: Server, http: httpx.Client, key: str) -> None:
    """Where a proxy lets no stream through, the page asks with its ETag instead."""
    create(http, key)
    with browser.new_context(base_url=dashboard.url) as screen:
        page = screen.new_page()
        page.route("**/stream", lambda route: route.abort())
        page.goto(f"/experiments/{key}")
        expect(page.locator("#connection")).to_have_text("Live")
        visit(http, key, WORTH)
        expect(page.locator(".figures")).to_contain_text("40", timeout=5_000)


def test_hidden_pages_ask_for_nothing(browser: Browser, dashboard: Server, http: httpx.Client, key: str) -> None:
    """A tab in the background closes its stream and asks nothing; in front again it shows the newest state at once."""
    create(http, key)
    with browser.new_context(base_url=dashboard.url) as screen:
        # Where, and what is there once the page has asked for all that it shows at first.
        for where, last in ((f"/experiments/{key}", ".log li"), ("/", "tbody tr")):
            page = screen.new_page()
            page.goto(where)
            expect(page.locator("#connection")).to_have_text("Live")
            expect(page.locator(last).first).to_be_visible()
            page.evaluate(HIDE, arg=True)
            asked: list[str] = []
            page.on("request", partial(_note, asked))
            expect(page.locator("#connection")).to_have_text("Paused")
            visit(http, key, WORTH)
            page.wait_for_timeout(2_500)
            assert asked == []
            page.evaluate(HIDE, arg=False)
            expect(page.locator("#connection")).to_have_text("Live")
        expect(page.locator("tbody")).to_contain_text("80")


def test_the_page_survives_a_restart(browser: Browser, sqlite_template: Path, tmp_path: Path) -> None:
    """The server is killed while pages are open: they say so, and come back when it does; a polite stop waits for no stream."""
    database = tmp_path / "bestarm.db"
    shutil.copy(sqlite_template, database)
    port = free_port()
    with (
        Server(f"sqlite:///{database}", port=port) as first,
        first.client() as http,
        browser.new_context(base_url=first.url) as screen,
    ):
        create(http, "phoenix")
        visit(http, "phoenix", WORTH)
        experiment, overview = screen.new_page(), screen.new_page()
        experiment.goto("/experiments/phoenix")
        overview.goto("/")
        for page in (experiment, overview):
            expect(page.locator("#connection")).to_have_text("Live")
        first.kill()
        for page in (experiment, overview):
            expect(page.locator("#connection")).to_contain_text("Connection lost")
        with Server(f"sqlite:///{database}", port=port) as second, second.client() as again:
            visit(again, "phoenix", WORTH, seed=2)
            for page in (experiment, overview):
                expect(page.locator("#connection")).to_have_text("Live", timeout=10_000)
                expect(page.locator("main")).to_contain_text("80", timeout=5_000)
            began = time.monotonic()
            assert second.stop() in {0, -signal.SIGTERM}
            assert time.monotonic() - began < 8, "an open stream kept the service from stopping"
