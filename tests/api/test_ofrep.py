"""OpenFeature's protocol: experiments as flags, in the shapes that the stock providers read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from service.domain.limits import MOST_STREAMS_OF_KEY
from testing.credentials import ORIGIN, new_key
from testing.databases import NewDatabase
from testing.json_client import JsonClient
from testing.server import ADMIN_KEY, Server, bearer

_FLAGS = "/ofrep/v1/evaluate/flags"
_VALUES: dict[str, Any] = {"a": True, "b": "text", "c": 1, "d": 1.0, "e": {"size": 2}, "f": None}


@pytest.fixture(scope="module")
def flags(new_database: NewDatabase) -> Iterator[Server]:
    """A service whose flags pages of one origin may evaluate."""
    with Server(new_database(), measured=True, key=ADMIN_KEY, BESTARM_CORS_ORIGINS=ORIGIN) as running:
        yield running


@pytest.fixture(scope="module")
def ofrep(flags: Server, admin: JsonClient) -> Iterator[httpx.Client]:
    """A client of it, with a stored key: the administrator's own has no tokens."""
    with flags.client() as client:
        client.headers.update(bearer(new_key(admin, scopes=["admin"])["secret"]))
        yield client


@pytest.fixture(scope="module")
def admin(flags: Server) -> Iterator[JsonClient]:
    """Another, for the API."""
    with JsonClient(flags.url, key=ADMIN_KEY) as connection:
        yield connection


def _flag(admin: JsonClient, key: str, **settings: Any) -> str:  # noqa: ANN401 - any JSON
    arms = [{"key": name, "value": value} for name, value in _VALUES.items()]
    admin.create(key, **({"arms": arms, "sticky": True} | settings))
    return key


def _context(unit: object) -> dict[str, Any]:
    return {"context": {"targetingKey": unit, "country": "DE"}}


def _draws(admin: JsonClient, key: str) -> int:
    drawn: int = admin.send("GET", f"/v1/experiments/{key}/recommendation").body["draws"]
    return drawn


def test_an_evaluation_is_an_ask(ofrep: httpx.Client, admin: JsonClient, key: str) -> None:
    """Variant, value and metadata are the assignment's; the same unit again is no new exposure."""
    _flag(admin, key)
    first, again = (ofrep.post(f"{_FLAGS}/{key}", json=_context("u")).json() for _ in range(2))
    asked = admin.ask(key, "u")
    assert first == again
    assert first["metadata"]["assignmentId"] == asked["id"]
    assert (first["key"], first["variant"], first["reason"]) == (key, asked["arm"], "SPLIT")
    assert all(isinstance(value, str | int | float) for value in first["metadata"].values())
    assert _draws(admin, key) == 1


def test_every_type_of_value(ofrep: httpx.Client, admin: JsonClient, key: str) -> None:
    """As it was given; a float stays one, and an arm without a value is its key."""
    _flag(admin, key)
    written = {answer.json()["variant"]: answer.text for answer in _warm(ofrep, key)}
    expected = {"a": "true", "b": '"text"', "c": "1", "d": "1.0", "e": '{"size":2}', "f": '"f"'}
    assert {name: f'"value":{value},' in written[name] for name, value in expected.items()} == dict.fromkeys(expected, True)


def _warm(ofrep: httpx.Client, key: str) -> list[httpx.Response]:
    """Every arm once: the first draws of an experiment are."""
    return [ofrep.post(f"{_FLAGS}/{key}", json=_context(f"u{number}")) for number in range(len(_VALUES))]


def test_the_life_of_a_flag(ofrep: httpx.Client, admin: JsonClient, key: str) -> None:
    """A draft and a pause are disabled, without a value; a conclusion is static, and nothing is recorded."""
    _flag(admin, key, status="draft")

    def seen() -> tuple[str, bool, int]:
        answer = ofrep.post(f"{_FLAGS}/{key}", json=_context("u"))
        return answer.json()["reason"], "value" in answer.json(), answer.status_code

    assert seen() == ("DISABLED", False, 200)
    admin.send("POST", f"/v1/experiments/{key}/start")
    assert seen() == ("SPLIT", True, 200)
    admin.send("POST", f"/v1/experiments/{key}/pause")
    assert seen() == ("DISABLED", False, 200)
    admin.send("POST", f"/v1/experiments/{key}/conclude", {"arm": "b"})
    static = ofrep.post(f"{_FLAGS}/{key}", json=_context("somebody new")).json()
    assert (static["variant"], static["value"], static["reason"]) == ("b", "text", "STATIC")
    assert _draws(admin, key) == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "TARGETING_KEY_MISSING"),
        ({"context": {}}, "TARGETING_KEY_MISSING"),
        ({"context": None}, "TARGETING_KEY_MISSING"),
        ({"context": {"targetingKey": ""}}, "TARGETING_KEY_MISSING"),
        ({"context": ["u"]}, "INVALID_CONTEXT"),
        (_context(7), "INVALID_CONTEXT"),
        (_context("u" * 300), "INVALID_CONTEXT"),
        (_context("a\x00b"), "INVALID_CONTEXT"),
        ([], "INVALID_CONTEXT"),
        ({"context": {"targetingKey": "u", "much": "x" * 1_100_000}}, "PARSE_ERROR"),
    ],
)
@pytest.mark.parametrize("bulk", [False, True])
def test_a_context_that_will_not_do(
    ofrep: httpx.Client, admin: JsonClient, key: str, body: object, code: str, *, bulk: bool
) -> None:
    """400 in the protocol's shape, and nothing is drawn."""
    _flag(admin, key, ofrep={"bulk": bulk})
    answer = ofrep.post(_FLAGS if bulk else f"{_FLAGS}/{key}", json=body)
    admin.send("PATCH", f"/v1/experiments/{key}", {"ofrep": {"bulk": False}})
    assert answer.status_code == 400
    assert (answer.json()["errorCode"], answer.json()["key"]) == (code, "" if bulk else key)
    assert answer.json()["errorDetails"]
    assert _draws(admin, key) == 0


def test_bad_json_is_a_parse_error(ofrep: httpx.Client) -> None:
    """Whatever the layer that notices it."""
    answer = ofrep.post(f"{_FLAGS}/x", content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "PARSE_ERROR")


def test_failures_have_the_protocol_s_shape(flags: Server, ofrep: httpx.Client, admin: JsonClient, key: str) -> None:
    """Unknown flags and routes, other methods, experiments that are no flags, keys that are no good."""
    _flag(admin, key, sticky=False)
    unknown = ofrep.post(f"{_FLAGS}/nothing", json=_context("u"))
    assert (unknown.status_code, unknown.json()["errorCode"], unknown.json()["key"]) == (404, "FLAG_NOT_FOUND", "nothing")
    no_flag = ofrep.post(f"{_FLAGS}/{key}", json=_context("u"))
    assert (no_flag.status_code, no_flag.json()["errorCode"]) == (400, "INVALID_CONTEXT")
    assert "sticky" in no_flag.json()["errorDetails"]
    assert ofrep.post("/ofrep/v1/configuration", json={}).json()["errorCode"] == "FLAG_NOT_FOUND"
    assert ofrep.get(f"{_FLAGS}/{key}").headers["content-type"] == "application/json"
    elsewhere = ofrep.post(f"{_FLAGS}/{key}", json=_context("u"), headers={"Host": "evil.example"})
    assert (elsewhere.status_code, elsewhere.json()["errorCode"]) == (400, "GENERAL")
    for headers in ({}, bearer("ba_wrong"), {"X-API-Key": "ba_wrong"}):
        refused = httpx.post(f"{flags.url}{_FLAGS}/{key}", json=_context("u"), headers=headers)
        assert (refused.status_code, refused.content) == (401, b"")
    reader = new_key(admin, scopes=["read"])["secret"]
    forbidden = httpx.post(f"{flags.url}{_FLAGS}/{key}", json=_context("u"), headers=bearer(reader))
    assert (forbidden.status_code, forbidden.content) == (403, b"")
    assert _draws(admin, key) == 0


def test_the_other_name_of_the_key(flags: Server, admin: JsonClient, key: str) -> None:
    """`X-API-Key` is good on these routes, and on no other."""
    _flag(admin, key)
    sent = {"X-API-Key": new_key(admin, scopes=["assign"])["secret"]}
    assert httpx.post(f"{flags.url}{_FLAGS}/{key}", json=_context("u"), headers=sent).status_code == 200
    assert httpx.post(f"{flags.url}/v1/experiments/{key}/assignments", json={"unit": "u"}, headers=sent).status_code == 401


def test_bulk_evaluates_what_opted_in(ofrep: httpx.Client, admin: JsonClient) -> None:
    """And draws nowhere else; the same arms are 304; a flag that fails does so by itself; a patch opts out."""
    _flag(admin, "quiet")
    _flag(admin, "shown", ofrep={"bulk": True})
    _flag(admin, "loose", ofrep={"bulk": True}, sticky=False)
    first = ofrep.post(_FLAGS, json=_context("u"))
    found = {flag["key"]: flag for flag in first.json()["flags"]}
    assert found.keys() == {"shown", "loose"}
    assert (found["shown"]["reason"], found["loose"]["errorCode"]) == ("SPLIT", "INVALID_CONTEXT")
    assert (_draws(admin, "shown"), _draws(admin, "loose"), _draws(admin, "quiet")) == (1, 0, 0)
    admin.ask("shown", "somebody else")  # the version moves, the answer does not
    same = ofrep.post(_FLAGS, json=_context("u"), headers={"If-None-Match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    admin.send("POST", "/v1/experiments/shown/conclude", {"arm": "e"})
    moved = ofrep.post(_FLAGS, json=_context("u"), headers={"If-None-Match": first.headers["etag"]})
    assert {flag["key"]: flag["reason"] for flag in moved.json()["flags"] if "reason" in flag} == {"shown": "STATIC"}
    assert admin.send("PATCH", "/v1/experiments/loose", {"ofrep": {"bulk": False}}).body["ofrep"] == {"bulk": False}
    assert [flag["key"] for flag in ofrep.post(_FLAGS, json=_context("u")).json()["flags"]] == ["shown"]
    change = admin.send("GET", "/v1/experiments/loose/events").body["events"][0]["details"]
    assert (change["before"], change["after"]) == ({"ofrep": {"bulk": True}}, {"ofrep": {"bulk": False}})


def test_a_reward_by_unit(admin: JsonClient, key: str) -> None:
    """For callers that know no id: once, and not where units keep no arm."""
    _flag(admin, key)
    drawn = admin.ask(key, "u/1 ü")
    path = f"/v1/experiments/{key}/units/u%201"
    assert admin.send("POST", f"{path}/reward", {"reward": 1}).body["code"] == "unit_not_found"
    admin.ask(key, "u 1")
    told = [admin.send("POST", f"{path}/reward", {"reward": 1}) for _ in range(2)]
    assert [(reply.status, reply.body["status"], reply.body["unit"]) for reply in told] == [(200, "rewarded", "u 1")] * 2
    other = admin.send("POST", f"{path}/reward", {"reward": 0})
    assert (other.status, other.body["code"]) == (409, "reward_conflict")
    batch = admin.send("POST", f"/v1/experiments/{key}/rewards", {"rewards": [{"unit": "u/1 ü", "reward": 1}]})
    assert batch.body["results"][0]["assignment"] == drawn["id"]


def test_corrections_by_unit(flags: Server, admin: JsonClient, key: str) -> None:
    """As by id, to the last count; a page may tell, but not take back what was told."""
    _flag(admin, key)
    drawn = admin.ask(key, "u")
    path = f"/v1/experiments/{key}/units/u/reward"
    public = new_key(admin, kind="public", scopes=["reward"], experiments=[key], origins=[ORIGIN])["secret"]
    page = bearer(public) | {"Origin": ORIGIN}
    assert httpx.post(f"{flags.url}{path}", json={"reward": 0}, headers=page).status_code == 200
    assert httpx.put(f"{flags.url}{path}", json={"reward": 1}, headers=page).status_code == 403
    assert httpx.delete(f"{flags.url}{path}", headers=page).status_code == 403
    corrected, voided, again = admin.send("PUT", path, {"reward": 1}), admin.send("DELETE", path), admin.send("DELETE", path)
    assert [(one.body["id"], one.body["status"], one.body["reward"]) for one in (corrected, voided, again)] == [
        (drawn["id"], "rewarded", 1),
        (drawn["id"], "voided", None),
        (drawn["id"], "voided", None),
    ]
    assert _draws(admin, key) == 0
    assert admin.send("PUT", path, {"reward": 1}).body["status"] == "rewarded"
    assert _draws(admin, key) == 1
    for method, body in (("PUT", {"reward": 1}), ("DELETE", None)):
        assert admin.send(method, path.replace("/u/", "/nobody/"), body).body["code"] == "unit_not_found"


def test_pages_of_the_named_origin_alone(flags: Server, admin: JsonClient, key: str) -> None:
    """A browser is told so, before and with the answer, on these routes and no others; a page needs a public key."""
    _flag(admin, key)
    public = new_key(admin, kind="public", scopes=["assign", "reward"], experiments=[key], origins=[ORIGIN])["secret"]
    asking = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    with httpx.Client(base_url=flags.url) as page:
        for path, origin, allowed in (
            (f"{_FLAGS}/{key}", ORIGIN, True),
            (f"/v1/experiments/{key}/units/u/reward", ORIGIN, True),
            (f"{_FLAGS}/{key}", "https://evil.example", False),
            (f"/v1/experiments/{key}/assignments", ORIGIN, False),
            ("/v1/keys", ORIGIN, False),
        ):
            answer = page.options(path, headers=asking | {"Origin": origin})
            assert (answer.status_code == 204, "access-control-allow-origin" in answer.headers) == (allowed, allowed)
        sent = bearer(public) | {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}
        evaluated = page.post(f"{_FLAGS}/{key}", json=_context("u"), headers=sent)
        assert (evaluated.status_code, evaluated.headers["access-control-allow-origin"]) == (200, ORIGIN)
        assert "ETag" in evaluated.headers["access-control-expose-headers"]
        assert page.post(f"/v1/experiments/{key}/units/u/reward", json={"reward": 1}, headers=sent).status_code == 200
        assert page.post(f"{_FLAGS}/{key}", json=_context("u"), headers=bearer(ADMIN_KEY) | {"Origin": ORIGIN}).status_code == 403


def _stream_of(answer: httpx.Response) -> str:
    (stream,) = answer.json()["eventStreams"]
    assert stream["type"] == "sse"
    uri: str = stream["endpoint"]["requestUri"]
    return uri


def _let_it_be_seen() -> None:
    """Viewers share what was read in the last half second."""
    time.sleep(0.6)


def test_a_page_hears_when_to_evaluate_again(flags: Server, ofrep: httpx.Client, admin: JsonClient, key: str) -> None:
    """After a change by people, not after traffic; the token in the address is all it needs."""
    _flag(admin, key, ofrep={"bulk": True})
    _let_it_be_seen()
    where = _stream_of(ofrep.post(_FLAGS, json=_context("u")))
    with httpx.stream("GET", f"{flags.url}{where}", timeout=30) as stream:
        assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        lines = stream.iter_lines()
        assert [next(lines).partition(":")[0] for _ in range(4)] == ["retry", "", "id", ""]
        admin.ask(key, "somebody else")  # nobody's answer moves
        first = admin.send("PATCH", f"/v1/experiments/{key}/arms/a", {"value": False})
        heard = [line for line in (next(lines) for _ in range(4)) if line]
        assert [line.partition(":")[0] for line in heard] == ["event", "id", "data"]
        assert heard[2] == 'data: {"type": "refetchEvaluation"}'
        assert first.status == 200


def test_a_page_that_comes_back_hears_what_it_has_missed(flags: Server, ofrep: httpx.Client, admin: JsonClient, key: str) -> None:
    """It names the last id that it was given, as browsers do by themselves; without one it has just evaluated."""
    _flag(admin, key, ofrep={"bulk": True})
    _let_it_be_seen()
    where = _stream_of(ofrep.post(_FLAGS, json=_context("u")))

    def first(**headers: str) -> dict[str, str]:
        """What the stream begins with, after how long to wait before coming back."""
        with httpx.stream("GET", f"{flags.url}{where}", headers=headers, timeout=30) as stream:
            lines = stream.iter_lines()
            assert [next(lines), next(lines)] == ["retry: 1000", ""]
            return {name: value.strip() for name, _, value in (line.partition(":") for line in iter(lambda: next(lines), ""))}

    begun = first()
    assert begun.keys() == {"id"}
    assert first(**{"Last-Event-ID": begun["id"]}) == begun
    assert admin.send("POST", f"/v1/experiments/{key}/pause").status == 200
    _let_it_be_seen()
    missed = first(**{"Last-Event-ID": begun["id"]})
    assert (missed["event"], missed["data"]) == ("message", '{"type": "refetchEvaluation"}')
    assert missed["id"] != begun["id"]
    assert first() == missed  # the address says what was evaluated, for changes before the stream was opened


def test_a_304_leaves_a_page_with_a_stream_that_is_good(flags: Server, admin: JsonClient, key: str) -> None:
    """The same key is given the same stream; where it would be another one the answer is told again, as with a rotated key."""
    _flag(admin, key, ofrep={"bulk": True})
    made = new_key(admin, scopes=["assign"], experiments=[key])
    first = httpx.post(f"{flags.url}{_FLAGS}", json=_context("u"), headers=bearer(made["secret"]))
    known = {"If-None-Match": first.headers["etag"]}
    assert httpx.post(f"{flags.url}{_FLAGS}", json=_context("u"), headers=bearer(made["secret"]) | known).status_code == 304
    rotated = admin.send("POST", f"/v1/keys/{made['id']}/rotate", {"grace_seconds": 0}).body["secret"]
    again = httpx.post(f"{flags.url}{_FLAGS}", json=_context("u"), headers=bearer(rotated) | known)
    assert (again.status_code, again.json()["flags"]) == (200, first.json()["flags"])
    assert _stream_of(again) != _stream_of(first)


def test_every_visitor_of_a_page_may_listen(flags: Server, admin: JsonClient, key: str) -> None:
    """They share one key: what else it may watch at once is no bound for them."""
    _flag(admin, key, ofrep={"bulk": True})
    public = new_key(admin, kind="public", scopes=["assign"], experiments=[key], origins=[ORIGIN])["secret"]
    page = {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}
    where = _stream_of(httpx.post(f"{flags.url}{_FLAGS}", json=_context("u"), headers=bearer(public) | page))
    with httpx.Client(timeout=30, headers=page, limits=httpx.Limits()) as browser, ExitStack() as visitors:
        for number in range(MOST_STREAMS_OF_KEY + 10):
            if number % 50 == 49:
                time.sleep(0.5)  # the key's own rate
            stream = visitors.enter_context(browser.stream("GET", f"{flags.url}{where}"))
            assert next(stream.iter_lines()) == "retry: 1000"


def test_a_token_is_for_its_stream_alone(flags: Server, admin: JsonClient) -> None:
    """It opens no other route, cannot be made up or stretched, and ends with its key."""
    made = new_key(admin, scopes=["assign"])
    where = _stream_of(httpx.post(f"{flags.url}{_FLAGS}", json=_context("u"), headers=bearer(made["secret"])))
    token = where.partition("token=")[2]
    name, until, signature = token.split(".")

    def status(token: str) -> int:
        with httpx.stream("GET", f"{flags.url}/ofrep/v1/stream", params={"token": token}, timeout=30) as stream:
            return stream.status_code

    assert status(token) == 200
    assert int(until) % 43_200 == 0  # the same for everybody, so that a page that asks again keeps its connection
    assert time.time() + 43_100 < int(until) < time.time() + 86_500
    wrong = [f"{name}.{int(until) + 1}.{signature}", f"admin.{until}.{signature}", f"{name}.{until}.{'0' * 64}", "x", ""]
    assert [status(one) for one in wrong] == [401] * len(wrong)
    assert httpx.get(f"{flags.url}/v1/experiments", params={"token": token}).status_code == 401
    assert httpx.get(f"{flags.url}/v1/experiments", headers=bearer(token)).status_code == 401
    admin.send("DELETE", f"/v1/keys/{made['id']}")
    assert status(token) == 401
