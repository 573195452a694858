"""The five questions that a page is opened with, each answered in the first screen, on a desk and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from testing.server import Server
from tests.web.dashboard.traffic import backdate, create, visit

ARMS = [{"key": "grey", "name": "Grey"}, {"key": "green", "name": "Green"}, {"key": "blue", "name": "Blue"}]
DESK, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
# How often the page says it, apart from the pictures: those are opened by themselves, too.
NAMED = """(words) => {
  const main = document.getElementById("main").cloneNode(true);
  main.querySelectorAll("figure").forEach((one) => one.remove());
  return main.textContent.split(words).length - 1;
}"""
QUESTIONS = {
    "stop": "May I stop?",
    "arm": "Which arm",
    "when": "When will I know?",
    "cost": "What does waiting cost?",
    "change": "Who changed what last?",
}


@pytest.fixture(scope="module")
def states(http: httpx.Client, database: Path) -> None:
    """An experiment in each state that a verdict can have."""
    three: dict[str, Any] = {"arms": ARMS, "control": "grey", "description": "A line about it.\n" * 40}
    create(http, "five-collecting", name="Collecting", **three)
    create(http, "five-leading", name="Leading", **three)
    visit(http, "five-leading", {"grey": 0.30, "green": 0.36, "blue": 0.12}, visitors=1_500)
    backdate(database, "five-leading", days=3)
    visit(http, "five-leading", {"grey": 0.30, "green": 0.36, "blue": 0.12}, visitors=20)
    create(http, "five-decided", name="Decided", **three)
    visit(http, "five-decided", {"grey": 0.1, "green": 0.5, "blue": 0.2}, visitors=1_000)
    create(http, "five-concluded", name="Concluded with a loser", **three)
    visit(http, "five-concluded", {"grey": 0.1, "green": 0.5, "blue": 0.2}, visitors=1_000)
    http.post("/v1/experiments/five-concluded/conclude", json={"arm": "blue"})


def answer(page: Page, name: str) -> Locator:
    """The answer to one of the questions."""
    return page.locator(f"[data-answer={name}]")


@pytest.mark.usefixtures("states")
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("state", ["collecting", "leading", "decided", "concluded"])
def test_every_answer_is_in_the_first_screen(browser: Browser, dashboard: Server, state: str, viewport: ViewportSize) -> None:
    """Sign, sentence and five answers are seen whole without scrolling, whatever the state and however long the description."""
    with browser.new_context(base_url=dashboard.url, viewport=viewport) as screen:
        page = screen.new_page()
        page.goto(f"/experiments/five-{state}")
        for name, question in QUESTIONS.items():
            expect(answer(page, name)).to_contain_text(question)
            expect(answer(page, name).locator(".answer")).not_to_have_text("…")
        for seen in (page.locator(".signs"), page.locator(".headline"), *(answer(page, name) for name in QUESTIONS)):
            expect(seen).to_be_in_viewport(ratio=1)
        assert page.evaluate("scrollY") == 0


@pytest.mark.usefixtures("states")
def test_an_open_question_says_what_is_missing_and_until_when(page: Page, http: httpx.Client) -> None:
    """Not yet, because of whom; the lead over the control; the day of the forecast; what goes to an arm shown to be worse."""
    page.goto("/experiments/five-leading")
    now = http.get("/v1/experiments/five-leading/recommendation").json()
    ahead = http.get("/v1/experiments/five-leading/forecast").json()
    assert (now["verdict"]["state"], now["arm"], now["verdict"]["held_up_by"]) == ("leading", "green", "grey")
    expect(page.locator(".signs")).to_contain_text("Leading")
    expect(page.locator(".signs")).to_contain_text("Blue is harmful")
    expect(answer(page, "stop")).to_contain_text("Not yet")
    expect(answer(page, "stop")).to_contain_text(f"Grey is {int(now['verdict']['progress'] * 100)}%")
    lift = next(arm["lift"] for arm in now["arms"] if arm["arm"] == "green")
    expect(answer(page, "arm")).to_contain_text(f"Green, +{lift['difference'] * 100:.1f} points")
    expect(answer(page, "arm")).to_contain_text("on Grey, the control")
    expect(answer(page, "arm")).to_contain_text(f"{lift['ratio']:.2f}\u00d7")
    expect(answer(page, "when")).to_contain_text("About ")
    rate = float(f"{ahead['rate_per_day']:.2g}")
    expect(answer(page, "when")).to_contain_text(f"at {rate:,.0f} a day")
    share = sum(arm["target_share"] for arm in now["arms"] if arm["evidence"] == 1)
    expect(answer(page, "cost")).to_contain_text(f"{share * 100:.1f}% of the traffic")
    expect(answer(page, "cost")).to_contain_text("shown to be worse")
    expect(answer(page, "change")).to_contain_text("Created")


@pytest.mark.usefixtures("states")
def test_a_verdict_says_yes_and_a_conclusion_who_and_how_good(page: Page) -> None:
    """Decided: yes, with which arm, since when. Concluded: who did it, what is served, and how far that is from the best."""
    page.goto("/experiments/five-decided")
    expect(page.locator(".signs")).to_have_text("Decided")
    expect(answer(page, "stop")).to_contain_text("Yes, with Green")
    expect(answer(page, "stop")).to_contain_text("at 95% confidence")
    expect(answer(page, "when")).to_contain_text("It is known")
    page.goto("/experiments/five-concluded")
    expect(page.locator(".signs")).to_have_text("Concluded")
    expect(answer(page, "stop")).to_contain_text("By request. Everyone gets Blue.")
    expect(answer(page, "arm")).to_contain_text("Blue is served")
    expect(answer(page, "arm")).to_contain_text("worse than that of Green, the best")
    expect(answer(page, "cost")).to_contain_text("points a visitor")
    expect(answer(page, "change")).to_contain_text("Concluded with Blue")


@pytest.mark.usefixtures("states")
@pytest.mark.parametrize("state", ["collecting", "leading", "decided", "concluded"])
def test_the_headline_is_a_whole_sentence_and_the_estimate_stands_in_the_details(page: Page, state: str) -> None:
    """The first sentence ends where it ends; the estimate has a name of its own, folded away below the verdict."""
    page.goto(f"/experiments/five-{state}")
    assert page.locator(".headline").inner_text().endswith(".")
    details = page.locator(".behind details")
    expect(details).not_to_have_attribute("open", "")
    expect(details).to_contain_text("Estimated chance of error")
    above = page.evaluate("document.querySelector('.signs').getBoundingClientRect().top")
    assert above < page.evaluate("document.querySelector('.behind details').getBoundingClientRect().top")


def test_a_dot_in_a_name_ends_no_sentence(page: Page, http: httpx.Client, key: str) -> None:
    """The headline is cut where the sentence ends, and not inside a name."""
    create(http, key, arms=[{"key": "a", "name": "Dr. No. Again"}, {"key": "b", "name": "Plain"}])
    visit(http, key, {"a": 0.9, "b": 0.1})
    page.goto(f"/experiments/{key}")
    expect(page.locator(".headline")).to_contain_text("Dr. No. Again ")


def test_the_last_change_shows_as_it_happens(page: Page, http: httpx.Client, key: str) -> None:
    """Whatever somebody changes appears in the answer, in words and with what was before."""
    create(http, key, name="Before")
    page.goto(f"/experiments/{key}")
    expect(answer(page, "change")).to_contain_text("Created")
    http.post(f"/v1/experiments/{key}/pause")
    expect(answer(page, "change")).to_contain_text("Paused")
    http.patch(f"/v1/experiments/{key}", json={"confidence": 0.99})
    expect(answer(page, "change")).to_contain_text("Confidence 95% → 99%")
    expect(answer(page, "stop")).to_contain_text("It is paused.")


def test_without_a_control_the_runner_up_is_the_measure(page: Page, http: httpx.Client, key: str) -> None:
    """The lead is told over the next best arm, and that no control is named."""
    create(http, key, arms=ARMS)
    visit(http, key, {"grey": 0.1, "green": 0.6, "blue": 0.3}, visitors=300)
    page.goto(f"/experiments/{key}")
    expect(answer(page, "arm")).to_contain_text("on Blue, the next best. No control is named.")


def test_all_times_are_the_viewer_s_and_the_zone_is_named_once(
    browser: Browser, dashboard: Server, http: httpx.Client, key: str
) -> None:
    """The page tells the time of the reader's clock, and says once which one that is."""
    create(http, key)
    with browser.new_context(base_url=dashboard.url, timezone_id="Asia/Tokyo") as screen:
        page = screen.new_page()
        page.goto(f"/experiments/{key}")
        expect(page.locator(".log li").first).to_be_visible()
        assert page.evaluate(NAMED, arg="Asia/Tokyo") == 1
        created = http.get(f"/v1/experiments/{key}").json()["created_at"]
        local = page.evaluate("(iso) => new Date(iso).toLocaleTimeString('en-GB', {hour: '2-digit', minute: '2-digit'})", created)
        expect(page.locator("[aria-labelledby=settings-title]")).to_contain_text(local)


@pytest.mark.parametrize(
    ("low", "median", "words"),
    [
        (900_000, 6_400_000, "it would take about 6,400,000 more draws (at best 900,000)."),
        (900_000, None, "it would take far more draws than there are (at best 900,000)."),
        (None, None, "it would take far more draws than there are."),
    ],
)
def test_a_verdict_that_probably_never_comes_is_told_so(page: Page, low: int | None, median: int | None, words: str) -> None:
    """On the experiment's page with what it would take, and in the list."""
    forecast = {"never": True, "draws": {"low": low, "median": median, "high": None}, "at": None, "rate_per_day": None}
    page.goto("/")
    short, long = page.evaluate("async (one) => (await import('/static/answers.js')).forecastWords(one, 'running')", forecast)
    assert (short, long) == ("Probably never", f"Hardly anything sets the best arms apart: {words}")
    row = {"status": "running", "verdict": {"state": "leading"}, "forecast": forecast}
    told = page.evaluate("async (row) => (await import('/static/list_row.js')).forecastTexts(row)", row)
    assert told[0] == "probably never"


@pytest.mark.parametrize(("low", "least"), [(40_000, "; at best it comes in about 40,000 draws"), (None, "")])
def test_a_verdict_that_most_futures_do_not_have_is_not_in_sight(page: Page, low: int | None, least: str) -> None:
    """A median of null that is no "never": there are few rewards yet. No number is told that nobody knows."""
    forecast = {"never": False, "draws": {"low": low, "median": None, "high": None}, "at": None, "rate_per_day": None}
    page.goto("/")
    told = page.evaluate("async (one) => (await import('/static/answers.js')).forecastWords(one, 'running')", forecast)
    assert told == ["Not in sight", f"In most futures there is no verdict within a thousand times the rewards so far{least}."]
    row = {"status": "running", "verdict": {"state": "leading"}, "forecast": forecast}
    assert page.evaluate("async (row) => (await import('/static/list_row.js')).forecastTexts(row)", row)[0] == "not in sight"
