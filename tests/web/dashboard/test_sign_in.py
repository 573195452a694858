"""Signing in, in a real browser: the way in, what a key's scopes leave of the pages, the keys, and the way out."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from testing.credentials import new_key
from testing.json_client import JsonClient, arms
from testing.server import ADMIN_KEY, Server


@pytest.fixture(scope="module")
def keyed_database(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the service with keys."""
    copied = tmp_path_factory.mktemp("keyed") / "bestarm.db"
    shutil.copy(sqlite_template, copied)
    return copied


@pytest.fixture(scope="module")
def keyed(keyed_database: Path) -> Iterator[Server]:
    """A service with keys."""
    with Server(f"sqlite:///{keyed_database}", key=ADMIN_KEY, measured=True) as running:
        yield running


@pytest.fixture(scope="module")
def admin(keyed: Server) -> Iterator[JsonClient]:
    """Its API, for the administrator."""
    with JsonClient(keyed.url, key=ADMIN_KEY) as client:
        client.create("shown", name="Shown", arms=arms(2))
        yield client


@pytest.fixture
def window(browser: Browser, keyed: Server) -> Iterator[BrowserContext]:
    """A browser in which nobody is signed in."""
    with browser.new_context(base_url=keyed.url, viewport={"width": 1280, "height": 900}) as opened:
        opened.set_default_timeout(10_000)
        yield opened


@pytest.fixture
def visitor(window: BrowserContext) -> Iterator[Page]:
    """A page on which nothing goes wrong but what the service refuses."""
    page = window.new_page()
    troubles: list[str] = []
    page.on("console", lambda said: troubles.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    yield page
    assert [trouble for trouble in troubles if not re.search(r"\b(401|422)\b", trouble)] == []


def sign_in(page: Page, key: str) -> None:
    """As a person does, by keyboard."""
    expect(page.locator("input[type=password]")).to_be_focused()
    page.keyboard.insert_text(key)
    page.keyboard.press("Enter")


@pytest.mark.usefixtures("admin")
@pytest.mark.parametrize("path", ["/", "/new", "/docs", "/keys", "/experiments/shown"])
def test_every_page_asks_who_is_there(visitor: Page, path: str) -> None:
    """And shows nothing else; it is as accessible as the others. Then it is the page that one wanted."""
    visitor.goto(path)
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(visitor.get_by_text("Shown")).to_have_count(0)
    key = visitor.get_by_label("Key")
    expect(key).to_have_attribute("type", "password")
    expect(key).to_have_attribute("autocomplete", "current-password")
    if path == "/":
        found = Axe().run(visitor)
        assert not found.response["violations"], found.generate_report()
    sign_in(visitor, ADMIN_KEY)
    expect(visitor.get_by_role("heading", level=1)).not_to_have_text("Sign in")
    expect(visitor.locator(".person")).to_contain_text("BESTARM_ADMIN_KEY admin")
    assert visitor.evaluate("document.cookie") == "", "a script can read the session"
    kept = visitor.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, history.state, location.href])")
    assert ADMIN_KEY not in visitor.content() + kept, "the page keeps the key"
    assert visitor.evaluate("location.pathname") == path


def test_a_wrong_key_is_told_in_words(visitor: Page, admin: JsonClient) -> None:
    """Beside the field, which keeps the focus; the next try may be right."""
    visitor.goto("/")
    sign_in(visitor, "")
    expect(visitor.locator(".field-error")).to_have_text("Paste a key first.")
    sign_in(visitor, "ba_wrong")
    expect(visitor.locator(".field-error")).to_have_text("This is no key of this service.")
    revoked = new_key(admin)
    admin.send("DELETE", f"/v1/keys/{revoked['id']}")
    sign_in(visitor, revoked["secret"])
    expect(visitor.locator(".field-error")).to_have_text("This key was revoked.")
    sign_in(visitor, ADMIN_KEY)
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Experiments")


def test_signing_out(visitor: Page, window: BrowserContext) -> None:
    """The page asks again, and so does one that was open beside it."""
    visitor.goto("/")
    sign_in(visitor, ADMIN_KEY)
    # The heading may be that of the first form still: what ends the session is the answer.
    with visitor.expect_response(lambda answer: answer.request.method == "DELETE"):
        visitor.get_by_role("button", name="Sign out").click()
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert window.cookies() == []


def test_a_page_shows_what_the_scopes_allow(visitor: Page, admin: JsonClient) -> None:
    """Who only reads finds no button that would be refused; live traffic, pictures and the log are there."""
    reader = new_key(admin, label="ann", scopes=["read"], experiments=["shown"])
    visitor.goto("/")
    sign_in(visitor, reader["secret"])
    expect(visitor.locator(".person")).to_contain_text("ann read in shown")
    expect(visitor.get_by_role("link", name="Shown")).to_be_visible()
    for name in ("New experiment", "Keys"):
        expect(visitor.get_by_role("link", name=name)).to_have_count(0)
    visitor.goto("/experiments/shown")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Shown")
    expect(visitor.locator("#connection")).to_have_text("Live")
    admin.ask("shown")
    expect(visitor.locator(".figures")).to_contain_text(re.compile(r"Draws[1-9]"))
    expect(visitor.locator(".chart svg[data-version]").first).to_be_visible()
    expect(visitor.locator(".log")).to_contain_text("Created by BESTARM_ADMIN_KEY")
    for name in ("Pause", "Conclude", "Add arm", "Edit settings", "Duplicate", "Delete", "Edit arm-0", "Disable arm-0"):
        expect(visitor.get_by_role("button", name=name)).to_have_count(0)
    visitor.get_by_role("button", name="Code").click()
    expect(visitor.get_by_role("dialog")).to_contain_text("Authorization: Bearer $BESTARM_KEY")
    visitor.goto("/new")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Not with this key")
    visitor.goto("/keys")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Not with this key")


def test_who_manages_may_change_but_not_delete(visitor: Page, admin: JsonClient, key: str) -> None:
    """Between reading and administering."""
    admin.create(key, arms=arms(2), status="draft")
    visitor.goto(f"/experiments/{key}")
    sign_in(visitor, new_key(admin, label="bob", scopes=["read", "manage"])["secret"])
    expect(visitor.get_by_role("button", name="Start")).to_be_visible()
    expect(visitor.get_by_role("button", name="Duplicate")).to_be_visible()
    expect(visitor.get_by_role("button", name="Delete")).to_have_count(0)
    visitor.get_by_role("button", name="Start").click()
    visitor.get_by_role("dialog").get_by_role("button", name="Start").click()
    expect(visitor.locator(".log")).to_contain_text("Started by bob")


def test_nothing_typed_is_lost_when_the_session_ends(visitor: Page, keyed_database: Path, key: str) -> None:
    """The page says so, above what was typed; with a new session the request goes on its way."""
    visitor.goto("/new")
    sign_in(visitor, ADMIN_KEY)
    visitor.get_by_label("Name", exact=True).first.fill(f"Made by {key}")
    with closing(sqlite3.connect(keyed_database)) as database, database:
        database.execute(
            "UPDATE sessions SET expires_at = 1, change = change + 1 WHERE change = (SELECT number FROM session_changes)"
        )
        database.execute("UPDATE session_changes SET number = number + 1")
    again = visitor.get_by_role("dialog", name="Your session has ended. Sign in again")
    deadline = time.monotonic() + 20
    while visitor.request.get("/dashboard/session").json()["signed_in"]:  # until then the request would be taken
        assert time.monotonic() < deadline
    visitor.get_by_role("button", name="Create experiment").click()
    expect(again).to_be_visible()
    visitor.keyboard.press("Escape")
    sign_in(visitor, ADMIN_KEY)
    expect(again).to_have_count(0)
    expect(visitor.get_by_role("heading", level=1)).to_have_text(f"Made by {key}")
    visitor.context.clear_cookies()
    visitor.goto("/")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_revoked_key_ends_what_its_holder_looks_at(visitor: Page, admin: JsonClient) -> None:
    """By itself, without a press; another key brings the page back as it was."""
    made = new_key(admin, scopes=["read"])
    visitor.goto("/experiments/shown")
    sign_in(visitor, made["secret"])
    expect(visitor.locator("#connection")).to_have_text("Live")
    admin.send("DELETE", f"/v1/keys/{made['id']}")
    admin.ask("shown")
    expect(visitor.get_by_role("dialog")).to_contain_text("Your session has ended")
    sign_in(visitor, ADMIN_KEY)
    expect(visitor.locator(".person")).to_contain_text("BESTARM_ADMIN_KEY")
    expect(visitor.locator("#connection")).to_have_text("Live")


def test_the_keys_page(visitor: Page, window: BrowserContext, admin: JsonClient) -> None:
    """Create, with the secret once and a button that copies it; rotate; revoke after a question."""
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.goto("/keys")
    sign_in(visitor, ADMIN_KEY)
    visitor.get_by_role("button", name="New key").click()
    dialog = visitor.get_by_role("dialog", name="New key")
    dialog.get_by_role("checkbox", name="read").uncheck()
    dialog.get_by_role("button", name="Create key").click()
    expect(dialog.locator(".field-error:visible")).to_have_count(2)
    found = Axe().run(visitor)
    assert not found.response["violations"], found.generate_report()
    dialog.get_by_label("Label").fill("shop")
    dialog.get_by_role("checkbox", name="assign").check()
    dialog.get_by_role("textbox", name="Experiments").fill("checkout-*, pricing")
    dialog.get_by_role("button", name="Create key").click()
    secret = visitor.get_by_role("dialog", name="The key “shop”")
    secret.get_by_role("button", name="Copy").click()
    expect(secret).to_contain_text("Copied")
    copied = visitor.evaluate("navigator.clipboard.readText()")
    secret.get_by_role("button", name="Close").click()
    row = visitor.locator("tbody tr").filter(has_text="shop").filter(has_text="active").first
    expect(row).to_contain_text("assign")
    expect(row).to_contain_text("checkout-*, pricing")
    expect(row).to_contain_text("never")
    assert copied.startswith("ba_")
    assert copied not in visitor.content()
    row.get_by_role("button", name="Rotate shop").click()
    visitor.get_by_role("dialog").get_by_role("button", name="Rotate").click()
    visitor.get_by_role("dialog", name="The key “shop”").get_by_role("button", name="Close").click()
    expect(visitor.locator("tbody tr").filter(has_text="shop")).to_have_count(2)
    newest = visitor.locator("tbody tr").first
    newest.get_by_role("button", name="Revoke shop").click()
    visitor.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(newest).to_contain_text("revoked")
    assert admin.send("GET", "/v1/keys?page_size=1").body["keys"][0]["status"] == "revoked"
    assert visitor.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the screen"


def test_an_open_service_says_so(page: Page) -> None:
    """In one line, and asks nobody who they are."""
    page.goto("/")
    expect(page.locator(".open-note")).to_have_text("Open: no keys, whoever reaches this machine may change everything.")
    expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
    page.goto("/keys")
    expect(page.locator(".notice")).to_contain_text("The first key closes this service")
