"""Bad input: each with its code, as a problem, and nothing written."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from testing.json_client import JsonClient, arms
from testing.rows import Rows

MANY = 10_001
DEEP = 100_000


@pytest.fixture(scope="session")
def live(wire: JsonClient) -> dict[str, str]:
    """Experiments to be misused, with an assignment of each."""
    wire.create("misused", arms=arms(2))
    wire.create("misused-sticky", arms=arms(2), sticky=True)
    wire.create("misused-other", arms=arms(2))
    return {"asked": wire.ask("misused")["id"], "theirs": wire.ask("misused-other")["id"]}


def assert_refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """A problem of this status and code, whole and named."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["code"] == code
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert all(isinstance(problem[name], str) and problem[name] for name in ("type", "title", "detail"))
    for field in problem.get("errors", []):
        assert set(field) == {"pointer", "detail"}
    return problem


def new(**changes: object) -> dict[str, object]:
    """The body of a good experiment, made bad."""
    return {"key": "never", "arms": arms(2)} | changes


BAD_EXPERIMENTS: dict[str, tuple[object, str]] = {
    "unknown field": (new(polcy={}), "/polcy"),
    "unknown field of an arm": (new(arms=[{"key": "a"}, {"key": "b", "weight": 1}]), "/arms/1/weight"),
    "no key": ({"arms": arms(2)}, "/key"),
    "no arms": ({"key": "never"}, "/arms"),
    "empty arms": (new(arms=[]), "/arms"),
    "one arm": (new(arms=arms(1)), "/arms"),
    "10,001 arms": (new(arms=arms(MANY)), "/arms"),
    "duplicate arm keys": (new(arms=[{"key": "a"}, {"key": "a"}]), ""),
    "arms as an object": (new(arms={"a": 1}), "/arms"),
    "key with a slash": (new(key="a/b"), "/key"),
    "key with an emoji": (new(key="a😀"), "/key"),
    "key in capitals": (new(key="Abc"), "/key"),
    "key with a trailing newline": (new(key="abc\n"), "/key"),
    "key of 65 characters": (new(key="a" * 65), "/key"),
    "empty key": (new(key=""), "/key"),
    "key as a number": (new(key=7), "/key"),
    "arm key with a slash": (new(arms=[{"key": "a"}, {"key": "b/c"}]), "/arms/1/key"),
    "status concluded": (new(status="concluded"), "/status"),
    "sticky as text": (new(sticky="true"), "/sticky"),
    "sticky as a number": (new(sticky=1), "/sticky"),
    "confidence one": (new(confidence=1), "/confidence"),
    "confidence as text": (new(confidence="0.9"), "/confidence"),
    "negative floor": (new(arms=[{"key": "a", "min_share": -0.1}, {"key": "b"}]), "/arms/0/min_share"),
    "floors above one": (new(arms=[{"key": "a", "min_share": 0.6}, {"key": "b", "min_share": 0.6}]), "/arms"),
    "unknown policy": (new(policy={"kind": "thompson"}), "/policy/kind"),
    "negative seed": (new(policy={"seed": -1}), "/policy/seed"),
    "seed of 2^53": (new(policy={"seed": 2**53}), "/policy/seed"),
    "seed as a float": (new(policy={"seed": 1.5}), "/policy/seed"),
    "seed as true": (new(policy={"seed": True}), "/policy/seed"),
    "sharpness below one": (new(policy={"sharpness": 0.5}), "/policy/sharpness"),
    "sharpness above three": (new(policy={"kind": "simple_tracking", "sharpness": 3.5}), "/policy/sharpness"),
    "a guard above one": (new(policy={"kind": "almost_tracking", "guard": 1.5}), "/policy/guard"),
    "unknown ties": (new(policy={"kind": "simple_tracking", "ties": "lowest"}), "/policy/ties"),
    "parameters of a policy that is still to be chosen": (new(policy={"sharpness": 1.5}), "/policy"),
    "batch below 2K": (new(policy={"kind": "almost_tracking", "batch_size": 3}), "/policy/batch_size"),
    "sufficiency one": (new(policy={"kind": "almost_tracking", "sufficiency": 1}), "/policy/sufficiency"),
    "a parameter of another policy": (new(policy={"kind": "uniform", "batch_size": 10}), "/policy"),
    "bounded without bounds": (new(reward={"kind": "bounded"}), "/reward"),
    "bounds upside down": (new(reward={"kind": "bounded", "min": 1, "max": 0}), "/reward"),
    "bounds of a binary reward": (new(reward={"kind": "binary", "min": 0, "max": 1}), "/reward"),
    "unknown goal": (new(reward={"goal": "win"}), "/reward/goal"),
    "expiry of no time": (new(expiry={"after_seconds": 0}), "/expiry/after_seconds"),
    "expiry of eleven years": (new(expiry={"after_seconds": 315_360_001}), "/expiry/after_seconds"),
    "expiry reward of another kind": (new(expiry={"after_seconds": 1, "reward": 0.5}), "/expiry/reward"),
    "separated false": (new(conclude_when={"separated": False}), "/conclude_when/separated"),
    "negative observations": (new(conclude_when={"separated": True, "min_observations": -1}), "/conclude_when/min_observations"),
    "a value over 16 KiB": (new(arms=[{"key": "a", "value": "x" * (16 * 1024 - 1)}, {"key": "b"}]), "/arms/0/value"),
    "values over 8 MiB": (new(arms=[a | {"value": "x" * 16_000} for a in arms(525)]), "/arms"),
    "a list": ([], ""),
    "text": ("abc", ""),
    "null": (None, ""),
    "U+0000 in a name": (new(name="a\0b"), "/name"),
    "U+0000 in a value": (new(arms=[{"key": "a", "value": {"x": ["\0"]}}, {"key": "b"}]), "/arms/0/value/x/0"),
    "U+0000 in a value's name": (new(arms=[{"key": "a", "value": {"\0": 1}}, {"key": "b"}]), "/arms/0/value"),
    "a lone surrogate in a description": (new(description="\ud800"), "/description"),
    "a lone surrogate in a value": (new(arms=[{"key": "a", "value": "\udfff"}, {"key": "b"}]), "/arms/0/value"),
}


@pytest.mark.parametrize("name", BAD_EXPERIMENTS)
def test_a_bad_experiment_is_refused(api: httpx.Client, rows: Rows, name: str) -> None:
    """422 with a pointer to the field, and no experiment."""
    body, pointer = BAD_EXPERIMENTS[name]
    before = rows.fingerprint()
    answer = api.post("/v1/experiments", content=json.dumps(body), headers={"content-type": "application/json"})
    problem = assert_refused(answer, 422, "validation_failed")
    assert pointer in [field["pointer"] for field in problem["errors"]]
    assert rows.fingerprint() == before


NUMBERS = ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e101", "1" + "0" * 400, "9" * 5_000]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12])
def test_numbers_are_finite(api: httpx.Client, rows: Rows, live: dict[str, str], number: str) -> None:
    """NaN, infinities and numbers beyond their range are 422 as a reward, a floor, a bound and an expiry."""
    before = rows.fingerprint()
    reward = f"/v1/experiments/misused/assignments/{live['asked']}/reward"
    bodies = {
        reward: f'{{"reward": {number}}}',
        "/v1/experiments": f'{{"key": "never", "arms": [{{"key": "a"}}, {{"key": "b"}}], "confidence": {number}}}',
        "/v1/experiments/misused/arms": f'{{"key": "never", "min_share": {number}}}',
        "/v1/experiments/misused/assignments/batch": f'{{"count": {number}}}',
    }
    for path, body in bodies.items():
        answer = api.post(path, content=body, headers={"content-type": "application/json"})
        assert_refused(answer, 422, "validation_failed")
    assert rows.fingerprint() == before


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_numbers_inside_values_are_finite(api: httpx.Client, rows: Rows, live: dict[str, str], number: str) -> None:
    """A value is any JSON, and these are not."""
    before = rows.fingerprint()
    for method, path in (("POST", "/v1/experiments/misused/arms"), ("PATCH", "/v1/experiments/misused/arms/arm-0")):
        key = '"key": "never", ' if method == "POST" else ""
        content = f'{{{key}"value": {{"x": [1, {number}]}}}}'
        answer = api.request(method, path, content=content, headers={"content-type": "application/json"})
        assert_refused(answer, 422, "validation_failed")
    assert rows.fingerprint() == before
    assert live["asked"]


BAD_REWARDS = [True, False, "1", None, [1], {"reward": 1}, 0.5, -1, 2]


@pytest.mark.parametrize("reward", BAD_REWARDS, ids=json.dumps)
def test_a_reward_is_a_number_of_its_kind(api: httpx.Client, rows: Rows, live: dict[str, str], reward: object) -> None:
    """Booleans, text and other values are 422, alone and (as `invalid`) in a batch."""
    before = rows.fingerprint()
    for method in ("POST", "PUT"):
        path = f"/v1/experiments/misused/assignments/{live['asked']}/reward"
        problem = assert_refused(api.request(method, path, json={"reward": reward}), 422, "validation_failed")
        assert problem["errors"][0]["pointer"] == "/reward"
    items = {
        "rewards": [{"assignment": live["asked"], "reward": reward}],
        "observations": [{"arm": "arm-0", "reward": reward}],
    }
    for name, given in items.items():
        answer = api.post(f"/v1/experiments/misused/{name}", json={name: given})
        assert (answer.status_code, answer.json()["results"][0]["status"]) == (200, "invalid")
    assert rows.fingerprint() == before


BAD_REQUESTS: dict[str, tuple[str, str, object, int, str]] = {
    "unknown field of an ask": ("POST", "misused/assignments", {"user": "x"}, 422, "validation_failed"),
    "unit as a number": ("POST", "misused/assignments", {"unit": 5}, 422, "validation_failed"),
    "empty unit": ("POST", "misused/assignments", {"unit": ""}, 422, "validation_failed"),
    "unit of 256 characters": ("POST", "misused/assignments", {"unit": "u" * 256}, 422, "validation_failed"),
    "unit with U+0000": ("POST", "misused/assignments", {"unit": "a\0"}, 422, "validation_failed"),
    "unit with a surrogate": ("POST", "misused/assignments", {"unit": "\ud83d"}, 422, "validation_failed"),
    "sticky without a unit": ("POST", "misused-sticky/assignments", {}, 422, "unit_required"),
    "sticky with a count": ("POST", "misused-sticky/assignments/batch", {"count": 2}, 422, "unit_required"),
    "batch of nothing": ("POST", "misused/assignments/batch", {}, 422, "validation_failed"),
    "batch of both": ("POST", "misused/assignments/batch", {"count": 1, "units": ["a"]}, 422, "validation_failed"),
    "batch of none": ("POST", "misused/assignments/batch", {"count": 0}, 422, "validation_failed"),
    "batch of true": ("POST", "misused/assignments/batch", {"count": True}, 422, "validation_failed"),
    "batch of 10,001": ("POST", "misused/assignments/batch", {"count": MANY}, 422, "validation_failed"),
    "10,001 units": ("POST", "misused/assignments/batch", {"units": ["u"] * MANY}, 422, "validation_failed"),
    "a bad unit among good ones": ("POST", "misused/assignments/batch", {"units": ["a", ""]}, 422, "validation_failed"),
    "no rewards": ("POST", "misused/rewards", {"rewards": []}, 422, "validation_failed"),
    "10,001 rewards": ("POST", "misused/rewards", {"rewards": [{}] * MANY}, 422, "validation_failed"),
    "rewards as an object": ("POST", "misused/rewards", {"rewards": {}}, 422, "validation_failed"),
    "no observations": ("POST", "misused/observations", {"observations": []}, 422, "validation_failed"),
    "10,001 observations": ("POST", "misused/observations", {"observations": [{}] * MANY}, 422, "validation_failed"),
    "unknown experiment": ("GET", "nobody", None, 404, "experiment_not_found"),
    "patch of an unknown experiment": ("PATCH", "nobody", {}, 404, "experiment_not_found"),
    "ask of an unknown experiment": ("POST", "nobody/assignments", {}, 404, "experiment_not_found"),
    "recommendation of an unknown experiment": ("GET", "nobody/recommendation", None, 404, "experiment_not_found"),
    "start of an unknown experiment": ("POST", "nobody/start", None, 404, "experiment_not_found"),
    "experiment with U+0000": ("GET", "misused%00", None, 404, "experiment_not_found"),
    "ask of an experiment with U+0000": ("POST", "misused%00/assignments", {}, 404, "experiment_not_found"),
    "experiment that is no UTF-8": ("GET", "%ff%fe", None, 404, "experiment_not_found"),
    "recommendation with U+0000": ("GET", "misused%00/recommendation", None, 404, "experiment_not_found"),
    "unknown arm": ("PATCH", "misused/arms/nobody", {}, 404, "arm_not_found"),
    "arm with U+0000": ("PATCH", "misused/arms/arm-0%00", {}, 404, "arm_not_found"),
    "assignment with U+0000": ("GET", "misused/assignments/asg_%00", None, 404, "assignment_not_found"),
    "patch of the key": ("PATCH", "misused", {"key": "new"}, 422, "validation_failed"),
    "patch of the status": ("PATCH", "misused", {"status": "paused"}, 422, "validation_failed"),
    "patch with null": ("PATCH", "misused", {"name": None}, 422, "validation_failed"),
    "patch of an arm's key": ("PATCH", "misused/arms/arm-0", {"key": "x"}, 422, "validation_failed"),
    "patch of an arm to a wrong status": ("PATCH", "misused/arms/arm-0", {"status": "off"}, 422, "validation_failed"),
    "illegal transition": ("POST", "misused/resume", None, 409, "illegal_transition"),
    "concluding with a number": ("POST", "misused/conclude", {"arm": 1}, 422, "validation_failed"),
    "page of nothing": ("GET", "misused/assignments?page_size=0", None, 422, "validation_failed"),
    "page of 1,001": ("GET", "misused/assignments?page_size=1001", None, 422, "validation_failed"),
    "page of words": ("GET", "misused/assignments?page_size=ten", None, 422, "validation_failed"),
    "a made-up page token": ("GET", "misused/assignments?page_token=abc", None, 422, "validation_failed"),
    "a page token beyond all numbers": (
        "GET",
        "misused/assignments?page_token=YmVsb3c6OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk=",
        None,
        422,
        "validation_failed",
    ),
    "an unknown status": ("GET", "misused/assignments?status=lost", None, 422, "validation_failed"),
    "an unknown arm in a filter": ("GET", "misused/assignments?arm=nobody", None, 404, "arm_not_found"),
    "U+0000 in a filter": ("GET", "misused/assignments?unit=%00", None, 422, "validation_failed"),
}


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_is_refused(api: httpx.Client, rows: Rows, name: str) -> None:
    """Each mistake has its status and code, and writes nothing."""
    method, path, body, status, code = BAD_REQUESTS[name]
    before = rows.fingerprint()
    content = None if body is None else json.dumps(body)
    headers = {} if body is None else {"content-type": "application/json"}
    assert_refused(api.request(method, f"/v1/experiments/{path}", content=content, headers=headers), status, code)
    assert rows.fingerprint() == before


def test_a_bad_experiment_key_harms_nobody_else(wire: JsonClient, api: httpx.Client, experiment: str) -> None:
    """A request that no database could store is refused before it joins other requests' transaction."""
    assert api.post("/v1/experiments/%00/assignments", json={}).status_code == 404
    assert wire.ask(experiment)["draw"] == 1


@pytest.mark.parametrize("path", ["misused/assignments", "misused/rewards", "misused/arms", "misused/conclude", ""])
@pytest.mark.parametrize(
    ("content", "content_type", "status", "code"),
    [
        (b'{"unit": ', "application/json", 400, "malformed_json"),
        (b"unit=1", "application/json", 400, "malformed_json"),
        (b"\xff\xfe\xfd", "application/json", 400, "malformed_json"),
        (b'{"a": 1} {"b": 2}', "application/json; charset=utf-8", 400, "malformed_json"),
        (b"[" * DEEP, "application/json", 400, "malformed_json"),
        (b"[" * DEEP + b"]" * DEEP, "application/json", 400, "malformed_json"),
        (b'{"a":' * DEEP, "application/json", 400, "malformed_json"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b"unit=1", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b"{}", None, 415, "unsupported_media_type"),
    ],
    ids=["half", "form as JSON", "bytes", "two", "deep", "deep and closed", "deep objects", "text", "form", "no type"],
)
def test_a_body_must_be_json(  # noqa: PLR0917 - parametrized
    api: httpx.Client, rows: Rows, path: str, content: bytes, content_type: str | None, status: int, code: str
) -> None:
    """What is not JSON is 400; what does not say that it is JSON is 415."""
    before = rows.fingerprint()
    headers = {} if content_type is None else {"content-type": content_type}
    answer = api.post(f"/v1/experiments/{path}".rstrip("/"), content=content, headers=headers)
    assert_refused(answer, status, code)
    assert rows.fingerprint() == before


@pytest.mark.parametrize("depth", [90, 150, 400, 700, 950])
def test_nesting_is_kept_or_refused(api: httpx.Client, key: str, depth: int) -> None:
    """A value nested a hundred deep is kept; a much deeper one is refused, however deep Python itself could go."""
    value = "[" * depth + "]" * depth
    body = f'{{"key": "{key}", "arms": [{{"key": "a", "value": {value}}}, {{"key": "b"}}]}}'
    answer = api.post("/v1/experiments", content=body, headers={"content-type": "application/json"})
    if depth <= 100:
        assert answer.status_code == 201
        assert api.post(f"/v1/experiments/{key}/assignments").json()["value"] == json.loads(value)
    else:
        assert_refused(answer, 400, "malformed_json")
        assert api.get(f"/v1/experiments/{key}").status_code == 404


@pytest.mark.parametrize(
    ("path", "kibibytes"),
    [("misused/assignments", 1024), ("misused/arms", 1024), ("", 16 * 1024), ("misused/assignments/batch", 16 * 1024)],
)
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "streamed"])
def test_a_body_has_its_limit(api: httpx.Client, rows: Rows, path: str, kibibytes: int, announced: bool) -> None:  # noqa: FBT001 - parametrized
    """One byte more than the limit is 413, whether the length was announced or not; at the limit it is read."""
    before = rows.fingerprint()
    whole = b'{"typo": "' + b"x" * (kibibytes * 1024 - 12) + b'"}'
    for body, status, code in ((whole, 422, "validation_failed"), (whole + b" ", 413, "body_too_large")):
        content = body if announced else iter([body[:1000], body[1000:]])
        answer = api.post(f"/v1/experiments/{path}".rstrip("/"), content=content, headers={"content-type": "application/json"})
        assert_refused(answer, status, code)
    assert rows.fingerprint() == before


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\xe9", "tab\there"], ids=["empty", "long", "not ASCII", "tab"])
def test_an_idempotency_key_is_printable(api: httpx.Client, rows: Rows, live: dict[str, str], key: str) -> None:
    """1 to 255 printable characters, on every route that takes one."""
    before = rows.fingerprint()
    bodies: dict[str, object] = {
        "/v1/experiments": new(),
        "/v1/experiments/misused/assignments": {},
        "/v1/experiments/misused/assignments/batch": {"count": 1},
        "/v1/experiments/misused/arms": {"key": "never"},
        "/v1/experiments/misused/rewards": {"rewards": [{"assignment": live["asked"], "reward": 1}]},
    }
    for path, body in bodies.items():
        answer = api.post(path, json=body, headers=[(b"Idempotency-Key", key.encode("latin-1"))])
        assert_refused(answer, 422, "validation_failed")
    assert rows.fingerprint() == before


def test_the_largest_value_is_kept(wire: JsonClient, key: str) -> None:
    """16 KiB of JSON, counted without spaces and in UTF-8, is a value; one byte more is not."""
    for value in ("é" * (8 * 1024 - 1), [1] * (8 * 1024 - 1), "x" * (16 * 1024 - 2)):
        size = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
        assert 16 * 1024 - 1 <= size <= 16 * 1024
        name = f"{key}-{size}-{len(value)}"
        assert wire.create(name, arms=[{"key": "a", "value": value}, {"key": "b"}])["arms"][0]["value"] == value


def test_headers_sent_twice_are_answered(api: httpx.Client, experiment: str) -> None:
    """A header given twice is no reason to fail."""
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), ("X-Request-Id", "a"), ("X-Request-Id", "b")]
    answer = api.post(f"/v1/experiments/{experiment}/assignments", json={}, headers=twice)
    assert answer.status_code in (201, 422)
