"""Reading the pictures on an experiment's page: by pointer, by touch and by keyboard, in the viewer's time zone."""

from __future__ import annotations

import re

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, FloatRect, Locator, Page, expect

from testing.server import Server
from tests.web.dashboard.traffic import create, visit

WORTH = {"grey": 0.2, "green": 0.7, "red": 0.4}
LONG = "A name that is far too long to be shown in any picture of any size on any screen"


@pytest.fixture(scope="module")
def told(http: httpx.Client) -> str:
    """An experiment with a course."""
    arms = [{"key": "grey", "name": "Grey"}, {"key": "green", "name": LONG}, {"key": "red", "name": "Red"}]
    create(http, "to-be-read", arms=arms, control="grey")
    for seed in range(8):
        visit(http, "to-be-read", WORTH, visitors=50, seed=seed)
    return "to-be-read"


def plot(page: Page, name: str) -> Locator:
    """The picture with this title, once it is there."""
    found = page.get_by_role("group", name=re.compile(name))
    found.locator("svg[data-version]").wait_for()
    return found


def box_of(found: Locator) -> FloatRect:
    """Where something is on the screen."""
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    assert box is not None
    return box


def test_a_pointer_reads_every_picture(page: Page, told: str) -> None:
    """Where it points, the numbers stand; where it leaves, they go. The names are whole, however long."""
    page.goto(f"/experiments/{told}")
    for name, says in (
        ("Share of the traffic", r"\(target "),
        ("Progress to the verdict", "Progress.*Leads"),
        ("Mean reward", "Over the control.*Observed"),
    ):
        shown = plot(page, name)
        box = box_of(shown.locator("> svg"))
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.35)
        expect(shown.locator(".reading")).to_be_visible()
        expect(shown.locator(".reading")).to_have_text(re.compile(says))
        expect(shown.locator(".reading")).to_contain_text(LONG)
        page.mouse.move(box["x"] - 30, box["y"] - 5)
        expect(shown.locator(".reading")).to_be_hidden()


def test_the_arrow_keys_read_and_the_values_are_announced(page: Page, http: httpx.Client, told: str) -> None:
    """From the newest reading back and forth, to the first and the last; the same numbers as the API's."""
    page.goto(f"/experiments/{told}")
    shown = plot(page, "Share of the traffic")
    announced = shown.locator("[aria-live]")
    page.get_by_role("button", name="Add arm").focus()
    shown.focus()
    page.keyboard.press("End")
    expect(shown.locator(".reading")).to_be_visible()
    newest = http.get(f"/v1/experiments/{told}/recommendation").json()["arms"][0]
    expect(announced).to_contain_text(f"Grey {newest['share'] * 100:.1f}% (target {newest['target_share'] * 100:.1f}%)")
    last = announced.text_content()
    page.keyboard.press("PageUp")
    expect(announced).not_to_have_text(str(last))
    earlier = announced.text_content()
    page.keyboard.press("ArrowRight")
    expect(announced).not_to_have_text(str(earlier))
    page.keyboard.press("ArrowLeft")
    expect(announced).to_have_text(str(earlier))
    page.keyboard.press("Home")
    expect(announced).not_to_have_text(str(last))
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()
    page.keyboard.press("Escape")
    expect(shown.locator(".reading")).to_be_hidden()
    rows = plot(page, "Mean reward")
    rows.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(rows.locator("[aria-live]")).to_contain_text("Red: Over the control +")


def test_what_is_being_read_stays_while_the_picture_is_renewed(page: Page, http: httpx.Client, key: str) -> None:
    """A new picture takes the place of the old one under the reader's eyes, and the reading goes on."""
    create(http, key)
    even = {"control": 0.5, "variant": 0.5}  # nothing is found out, which would be another version
    for seed in range(4):
        visit(http, key, even, seed=seed)
    page.goto(f"/experiments/{key}")
    shown = plot(page, "Share of the traffic")
    shown.focus()
    page.keyboard.press("Home")
    expect(shown.locator(".reading")).to_be_visible()
    first = shown.locator(".reading").text_content()
    visit(http, key, even, seed=9)
    version = http.get(f"/v1/experiments/{key}").json()["version"]
    expect(shown.locator(f"svg[data-version='{version}']")).to_be_visible()
    expect(shown.locator(".reading")).to_have_text(str(first))


def test_a_finger_reads_too(browser: Browser, dashboard: Server, told: str) -> None:
    """On a phone a tap shows the numbers, on the screen, and a tap elsewhere hides them."""
    with browser.new_context(base_url=dashboard.url, viewport={"width": 360, "height": 760}, has_touch=True) as screen:
        page = screen.new_page()
        page.goto(f"/experiments/{told}")
        shown = plot(page, "Share of the traffic")
        box = box_of(shown.locator("> svg"))
        page.touchscreen.tap(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
        reading = shown.locator(".reading")
        expect(reading).to_be_visible()
        inside = box_of(reading)
        assert inside["x"] >= 0
        assert inside["x"] + inside["width"] <= 360
        page.get_by_role("heading", level=1).tap()
        expect(reading).to_be_hidden()


def test_times_are_the_viewers_and_a_picture_elsewhere_says_utc(
    browser: Browser, dashboard: Server, http: httpx.Client, told: str
) -> None:
    """The page draws on the viewer's clock and names it; the picture that it links to is in UTC and says so."""
    with browser.new_context(base_url=dashboard.url, timezone_id="Asia/Kolkata") as screen:
        page = screen.new_page()
        page.goto(f"/experiments/{told}")
        shown = plot(page, "Share of the traffic")
        expect(shown.locator("> svg")).to_contain_text("UTC+05:30")
        expect(page.locator(".chart figcaption").first).to_contain_text(re.compile("Times in Asia/(Kolkata|Calcutta)"))
        linked = page.locator(".chart figcaption a").first.get_attribute("href")
    elsewhere = http.get(str(linked))
    assert " UTC</text>" in elsewhere.text
    where = f"/v1/experiments/{told}/charts/traffic.svg"
    for bad in ("-735", "845", "7", "east"):
        assert http.get(where, params={"utc_offset": bad}).status_code == 422


def test_no_words_of_a_picture_are_clipped(browser: Browser, dashboard: Server, told: str) -> None:
    """Measured in a browser with its own font, on a desk and on a phone."""
    for width in (1280, 360):
        with browser.new_context(base_url=dashboard.url, viewport={"width": width, "height": 800}) as screen:
            page = screen.new_page()
            page.goto(f"/experiments/{told}")
            for name in ("Share of the traffic", "Progress to the verdict", "Mean reward"):
                outside = (
                    plot(page, name)
                    .locator("> svg")
                    .evaluate(
                        """(picture) => [...picture.querySelectorAll("text")].filter((text) => {
                      const box = text.getBBox();
                      return box.x < 0 || box.x + box.width > picture.viewBox.baseVal.width;
                    }).map((text) => text.textContent)"""
                    )
                )
                assert outside == [], (name, width)


def test_only_shapes_and_words_are_taken_over(screen: BrowserContext, told: str) -> None:
    """Whatever an SVG could carry, nothing with an effect of its own comes into the page; the browser complains of some of it."""
    page = screen.new_page()
    page.goto(f"/experiments/{told}")
    taken = page.evaluate(
        """async () => {
          const { picture } = await import("/static/picture.js");
          const { element } = picture(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1" onload="x()">
            <title>t</title><script>document.title = "owned"</script><style>* { display: none }</style><image href="/x"/>
            <a href="javascript:void 0"><rect width="1"/></a><rect height="1" style="fill: red" onclick="x()"/></svg>`);
          document.body.append(element);
          return element.outerHTML.replace(/\\\\s+/g, " ");
        }"""
    )
    assert not re.search("script|style|image|href|on[a-z]+=|owned", taken), taken
    assert '<rect height="1">' in taken
    expect(page).not_to_have_title("owned")
