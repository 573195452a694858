"""OpenFeature's own providers for Python, Node and the browser: none knows of us, and all get what the experiment says."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from playwright.sync_api import Page, sync_playwright

from testing.browser import open_browser
from testing.credentials import new_key
from testing.databases import NewDatabase
from testing.json_client import JsonClient
from testing.server import ADMIN_KEY, Server, bearer, free_port

_HERE = Path(__file__).parent
_VALUES: dict[str, list[Any]] = {
    "flag": [True, True],
    "color": ["green", "red"],
    "limit": [3, 4],
    "rate": [1.0, 2.0],
    "layout": [{"columns": 2}, {"columns": 3}],
    "sizes": [["S", "M"], ["M", "L"]],  # the protocol knows no lists; all stock providers take one where an object is asked for
}
# What a page's key may send, far more than a test without polling does.
_BURST = 20
_SITE = free_port()
_ORIGIN = f"http://localhost:{_SITE}"


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Server]:
    """A service with a flag of every type, all of which pages evaluate, but not often, and two that are not for pages."""
    serving = Server(
        new_database(),
        key=ADMIN_KEY,
        BESTARM_CORS_ORIGINS=_ORIGIN,
        BESTARM_PUBLIC_RATE_LIMIT="0.01",
        BESTARM_PUBLIC_RATE_BURST=str(_BURST),
    )
    with serving as running, _admin(running) as admin:
        for flag, values in _VALUES.items():
            arms = [{"key": f"{flag}-{number}", "value": value} for number, value in enumerate(values)]
            admin.create(flag, arms=arms, sticky=True, ofrep={"bulk": True})
        admin.create("loose", arms=[{"key": "a", "value": True}, {"key": "b", "value": True}])
        admin.create("quiet", arms=[{"key": "a", "value": True}, {"key": "b", "value": True}], sticky=True)
        yield running


def _admin(service: Server) -> JsonClient:
    return JsonClient(service.url, key=ADMIN_KEY)


def _assigned(service: Server, flag: str, unit: str) -> Any:  # noqa: ANN401 - any JSON
    with _admin(service) as admin:
        return admin.ask(flag, unit)["value"]


def _draws(service: Server, flag: str) -> int:
    with _admin(service) as admin:
        drawn: int = admin.send("GET", f"/v1/experiments/{flag}/recommendation").body["draws"]
        return drawn


def test_python(service: Server) -> None:
    """Every type, sticky by its targeting key; the default on every error, with the protocol's code."""
    api.set_provider(OFREPProvider(service.url, headers_factory=lambda: bearer(ADMIN_KEY)))
    client, who, before = api.get_client(), EvaluationContext("py-1"), _draws(service, "flag")
    for _ in range(2):
        assert client.get_boolean_value("flag", False, who) is True
        assert client.get_string_value("color", "grey", who) == _assigned(service, "color", "py-1")
        assert client.get_integer_value("limit", 0, who) == _assigned(service, "limit", "py-1")
        assert client.get_float_value("rate", 0.0, who) == _assigned(service, "rate", "py-1")
        assert client.get_object_value("layout", {}, who) == _assigned(service, "layout", "py-1")
        assert client.get_object_value("sizes", [], who) == _assigned(service, "sizes", "py-1")
    assert _draws(service, "flag") == before + 1
    split = client.get_string_details("color", "grey", who)
    assert (split.reason, split.variant, isinstance(split.flag_metadata["assignmentId"], str)) == (
        Reason.SPLIT,
        split.variant,
        True,
    )
    errors = {
        "nothing": (who, ErrorCode.FLAG_NOT_FOUND),
        "loose": (who, ErrorCode.INVALID_CONTEXT),
        "color": (EvaluationContext(), ErrorCode.TARGETING_KEY_MISSING),
        "layout": (EvaluationContext("u" * 300), ErrorCode.INVALID_CONTEXT),
        "limit": (who, ErrorCode.TYPE_MISMATCH),
    }
    for flag, (context, code) in errors.items():
        failed = client.get_string_details(flag, "grey", context)
        assert (failed.value, failed.error_code) == ("grey", code)
    api.shutdown()


def test_python_refused(service: Server) -> None:
    """A wrong key: the default, and nothing drawn."""
    before = _draws(service, "flag")
    api.set_provider(OFREPProvider(service.url, headers_factory=lambda: bearer("ba_wrong")))
    refused = api.get_client().get_boolean_details("flag", False, EvaluationContext("py-2"))
    assert (refused.value, refused.error_code) == (False, ErrorCode.GENERAL)
    assert _draws(service, "flag") == before
    api.shutdown()


@pytest.mark.process
def test_both_wait_after_too_many(new_database: NewDatabase) -> None:
    """429 with its seconds: the providers give their defaults, and nothing is drawn beyond the burst."""
    units = [f"u{number}" for number in range(4)]
    with Server(new_database(), key=ADMIN_KEY) as unlimited, _admin(unlimited) as admin:
        admin.create("busy", arms=[{"key": "a", "value": True}, {"key": "b", "value": True}], sticky=True)
        keys = [new_key(admin, scopes=["assign"])["secret"] for _ in range(2)]
        database = unlimited.database_url
    with Server(database, key=ADMIN_KEY, BESTARM_RATE_LIMIT="0.01", BESTARM_RATE_BURST="2") as limited:
        api.set_provider(OFREPProvider(limited.url, headers_factory=lambda: bearer(keys[0])))
        client = api.get_client()
        assert [client.get_boolean_value("busy", False, EvaluationContext(unit)) for unit in units] == [True, True, False, False]
        api.shutdown()
        asked = [{"flag": "busy", "type": "boolean", "otherwise": False, "unit": unit} for unit in units]
        found = _run_node("evaluate.mjs", {"url": limited.url, "key": keys[1], "wanted": asked})
        assert [one["value"] for one in found] == [True, True, False, False]
    with Server(database, key=ADMIN_KEY) as again:
        assert _draws(again, "busy") == 2  # two units, whoever asked for them


def test_node(service: Server) -> None:
    """The same through Node's provider, in one process of its own."""
    wanted = [
        ("flag", "boolean", False, "node-1"),
        ("color", "string", "grey", "node-1"),
        ("color", "string", "grey", "node-1"),
        ("limit", "number", 0, "node-1"),
        ("rate", "number", 0, "node-1"),
        ("layout", "object", {}, "node-1"),
        ("sizes", "object", [], "node-1"),
        ("nothing", "boolean", False, "node-1"),
        ("loose", "boolean", False, "node-1"),
        ("color", "string", "grey", None),
        ("limit", "string", "grey", "node-1"),
    ]
    asked = [dict(zip(("flag", "type", "otherwise", "unit"), one, strict=True)) for one in wanted]
    found = _run_node("evaluate.mjs", {"url": service.url, "key": ADMIN_KEY, "wanted": asked})
    values = [one["value"] for one in found[:7]]
    assert values == [_assigned(service, flag, "node-1") for flag, *_ in wanted[:7]]
    assert {one["reason"] for one in found[:7]} == {"SPLIT"}
    failed = [(one["value"], one["errorCode"]) for one in found[7:]]
    assert failed == [
        (False, "FLAG_NOT_FOUND"),
        (False, "INVALID_CONTEXT"),
        ("grey", "TARGETING_KEY_MISSING"),
        ("grey", "TYPE_MISMATCH"),
    ]


def _run_node(script: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    if not (_HERE / "node_modules").exists():
        raise RuntimeError("Node's providers are not installed: `make node-packages` installs them.")
    done = subprocess.run(["node", script], cwd=_HERE, input=json.dumps(given), capture_output=True, text=True, timeout=60)  # noqa: PLW1510, S607 - read below
    assert done.returncode == 0, done.stderr
    read: list[dict[str, Any]] = json.loads(done.stdout)
    return read


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page of another origin, with the web provider in it."""
    folder = tmp_path_factory.mktemp("site")
    bundle = ["node_modules/.bin/esbuild", "page.mjs", "--bundle", "--format=esm", f"--outfile={folder}/page.js"]
    subprocess.run(bundle, cwd=_HERE, check=True, capture_output=True, timeout=60)
    (folder / "index.html").write_text('<!doctype html><title>shop</title><body><script type="module" src="page.js"></script>')
    handler = partial(_QuietFiles, directory=str(folder))
    with http.server.ThreadingHTTPServer(("localhost", _SITE), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield _ORIGIN
        server.shutdown()


class _QuietFiles(http.server.SimpleHTTPRequestHandler):
    """Files without a log."""

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - the base class's
        """Say nothing."""


@pytest.fixture(scope="module")
def page(site: str, service: Server) -> Iterator[Page]:
    """A tab of a real browser. It ends before the service does: the next one is set up without the browser's event loop."""
    assert site
    assert service
    with sync_playwright() as playwright:
        browser = open_browser(playwright)
        yield browser.new_page()
        browser.close()


def _visit(
    page: Page, site: str, service: Server, key: str, unit: str, *, poll: int = 300, changes: str = "sse"
) -> dict[str, Any]:
    page.goto("about:blank")
    page.goto(f"{site}/#{urlencode({'url': service.url, 'key': key, 'unit': unit, 'poll': poll, 'changes': changes})}")
    page.get_by_text("ready").wait_for()
    shown: dict[str, Any] = page.evaluate("window.evaluated()")
    return shown


def _public_key(service: Server, origin: str) -> str:
    with _admin(service) as admin:
        made = new_key(admin, kind="public", scopes=["assign"], experiments=[*_VALUES, "quiet"], origins=[origin])
        secret: str = made["secret"]
        return secret


@pytest.mark.browser
def test_a_page_of_an_allowed_origin(service: Server, site: str, page: Page) -> None:
    """It evaluates every type of what opted in, and again without drawing; what has not changed is 304; defaults on errors."""
    shown = _visit(page, site, service, _public_key(service, site), "web-1")
    for flag in _VALUES:
        assert (shown[flag]["value"], shown[flag]["reason"]) == (_assigned(service, flag, "web-1"), "SPLIT")
    assert (shown["quiet"]["value"], shown["quiet"]["errorCode"]) == (False, "FLAG_NOT_FOUND")
    assert (shown["mismatch"]["value"], shown["mismatch"]["errorCode"]) == ("none", "TYPE_MISMATCH")
    before = _draws(service, "color")
    with _admin(service) as admin:  # heard by the stream, and no answer moves
        assert admin.send("PATCH", "/v1/experiments/color", {"name": "Color"}).status == 200
    page.wait_for_function("window.evaluated().answers.length > 1")
    assert page.evaluate("window.evaluated().answers") == [200, 304]
    assert _draws(service, "color") == before
    assert _draws(service, "quiet") == 0


@pytest.mark.browser
def test_a_page_of_another_origin(service: Server, site: str, page: Page) -> None:
    """The browser does not let it read anything, the service draws nothing, and the page has its defaults."""
    before = [_draws(service, flag) for flag in _VALUES]
    elsewhere = site.replace("localhost", "127.0.0.1")
    shown = _visit(page, elsewhere, service, _public_key(service, site), "web-2")
    assert [shown[flag]["value"] for flag in _VALUES] == [False, "grey", 7, 0.5, {}, []]
    assert shown["answers"] == []
    assert [_draws(service, flag) for flag in _VALUES] == before


@pytest.mark.browser
def test_a_page_hears_of_a_conclusion(service: Server, site: str, page: Page) -> None:
    """Without polling: the stock provider listens to the stream that the answer names, and evaluates again."""
    with _admin(service) as admin:
        admin.create("heard", arms=[{"key": "a", "value": "a"}, {"key": "b", "value": "b"}], sticky=True, ofrep={"bulk": True})
        public = new_key(admin, kind="public", scopes=["assign"], experiments=["heard"], origins=[site])["secret"]
        _visit(page, site, service, public, "web-3", poll=0)
        mine = admin.ask("heard", "web-3")["value"]
        assert page.evaluate("window.evaluated().heard.value") == mine
        other = "b" if mine == "a" else "a"
        assert admin.send("POST", "/v1/experiments/heard/conclude", {"arm": other}).status == 200
        page.wait_for_function("wanted => window.evaluated().heard.value === wanted", arg=other)


@pytest.mark.browser
def test_a_page_that_asked_too_often_waits(service: Server, site: str, page: Page) -> None:
    """It may read how long, though it is of another origin: it keeps what it has, and polls no more."""
    public = _public_key(service, site)
    shown = _visit(page, site, service, public, "web-4", poll=20, changes="polling")
    page.wait_for_function("window.evaluated().answers.includes(429)")
    page.wait_for_timeout(300)
    again = page.evaluate("window.evaluated()")
    assert again["answers"] == [200, *[304] * (_BURST - 1), 429]
    assert [again[flag] for flag in _VALUES] == [shown[flag] for flag in _VALUES]
    before = _draws(service, "color")
    new = _visit(page, site, service, public, "web-5", poll=20, changes="polling")
    assert (new["answers"], new["color"]["value"]) == ([429], "grey")
    assert _draws(service, "color") == before


@pytest.mark.browser
def test_a_page_that_finds_no_place_to_listen_is_quiet(service: Server, site: str, page: Page) -> None:
    """It has its answer, and does not ask for it again every second: the stock provider would, if its stream were refused."""
    public = _public_key(service, site)
    with httpx.Client(base_url=service.url, headers=bearer(public) | {"Origin": site}) as other:
        for _ in range(_BURST - 1):
            assert other.post("/ofrep/v1/evaluate/flags", json={"context": {"targetingKey": "web-6"}}).status_code == 200
    with page.expect_response("**/ofrep/v1/stream*") as sent_away:
        shown = _visit(page, site, service, public, "web-6", poll=0)
    assert sent_away.value.status == 200
    assert shown["color"]["value"] == _assigned(service, "color", "web-6")
    page.wait_for_timeout(1_500)
    assert page.evaluate("window.evaluated().answers") == [200]
