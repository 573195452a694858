"""Every route, with every kind of key, by both ways in: the right answer, and nothing written where it is a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from fastapi.routing import APIRoute

from service.domain.callers import Scope
from service.main import create_app
from service.web.access.route_scopes import OPEN, ROUTE_SCOPES
from service.web.problems import each_route
from testing.credentials import Credential, new_key, of_each_kind
from testing.json_client import JsonClient, Reply, arms
from testing.receiver import QUIET_WEBHOOK
from testing.rows import Rows
from testing.server import Server

Route = tuple[str, str]
_numbers = count(1)
_E = "/v1/experiments/{key}"
# A good body for each route that takes one; `NEW` becomes a name that nothing has yet.
_BODIES: dict[Route, Any] = {
    ("POST", "/v1/experiments"): {"key": "NEW", "arms": [{"key": "a"}, {"key": "b"}]},
    ("PATCH", _E): {"name": "Another"},
    ("POST", f"{_E}/conclude"): {"arm": "arm-0"},
    ("POST", f"{_E}/duplicate"): {"key": "NEW"},
    ("POST", f"{_E}/arms"): {"key": "NEW"},
    ("PATCH", f"{_E}/arms/{{arm}}"): {"name": "Another"},
    ("POST", f"{_E}/assignments"): {"unit": "NEW"},
    ("POST", f"{_E}/assignments/batch"): {"units": ["NEW"]},
    ("POST", f"{_E}/assignments/{{id}}/reward"): {"reward": 1},
    ("POST", f"{_E}/units/{{unit}}/reward"): {"reward": 1},
    ("PUT", f"{_E}/units/{{unit}}/reward"): {"reward": 1},
    ("POST", "/ofrep/v1/evaluate/flags/{key}"): {"context": {"targetingKey": "NEW"}},
    ("POST", "/ofrep/v1/evaluate/flags"): {"context": {"targetingKey": "NEW"}},
    ("PUT", f"{_E}/assignments/{{id}}/reward"): {"reward": 0},
    ("POST", f"{_E}/rewards"): {"rewards": [{"unit": "somebody", "reward": 1}]},
    ("POST", f"{_E}/observations"): {"observations": [{"arm": "arm-0", "reward": 1}]},
    ("PUT", f"{_E}/observations/{{id:any_text}}"): {"reward": 0},
    ("POST", "/dashboard/plan"): {"arms": 2, "baseline": 0.1, "lift": 0.1},
    ("POST", "/v1/keys"): {"label": "another", "scopes": ["read"]},
    ("POST", "/v1/keys/{id}/rotate"): {"grace_seconds": 60},
    ("POST", "/v1/webhooks"): QUIET_WEBHOOK,
    ("PATCH", "/v1/webhooks/{id}"): {"events": ["experiment.paused"]},
    ("POST", "/v1/webhooks/{id}/rotate"): {"grace_seconds": 60},
}
# What a public key may do: the routes that name units.
_BY_UNIT = {
    ("POST", f"{_E}/assignments"),
    ("POST", f"{_E}/assignments/batch"),
    ("POST", f"{_E}/rewards"),
    ("POST", f"{_E}/units/{{unit}}/reward"),
    ("POST", "/ofrep/v1/evaluate/flags/{key}"),
    ("POST", "/ofrep/v1/evaluate/flags"),
    ("GET", "/ofrep/v1/stream"),
}
# The routes that the fast path knows.
_FAST = {("POST", f"{_E}/assignments"), ("POST", f"{_E}/assignments/{{id}}/reward")}
# What is gone when the first has done it: 404 for the next, who may do it as well.
_DELETED_ONCE = ("DELETE", "/v1/webhooks/{id}")
# A name that a key of some experiments only is not for: it exists, as far as its caller may know.
_NEW_NAMES = {("POST", "/v1/experiments"), ("POST", f"{_E}/duplicate")}
# What an earlier credential has done already, or nobody could do to an experiment that runs: let in, and answered 409.
_NOT_NOW = {
    ("POST", f"{_E}/start"),
    ("POST", f"{_E}/archive"),
    ("DELETE", _E),
    ("POST", "/v1/keys/{id}/rotate"),
    ("POST", "/v1/webhooks/{id}/deliveries/{message}/resend"),
}


@dataclass(frozen=True)
class _Place:
    """A service, an experiment of it, and all the kinds of keys to it."""

    admin: JsonClient
    plain: JsonClient
    by_framework: JsonClient
    key: str
    assignment: str
    api_key: str
    webhook: str
    message: str
    doomed_webhook: str
    """The one that is deleted by whoever may, first."""
    credentials: list[Credential]
    rows: Rows

    def send(self, route: Route, credential: Credential, *, fast: bool) -> Reply:
        """The route, filled in, with this credential."""
        method, path = route
        named = {"observations": "told-1", "keys": self.api_key, "webhooks": self.webhook}
        told = next((name for part, name in named.items() if part in path), self.assignment)
        told = self.doomed_webhook if route == _DELETED_ONCE else told
        filled = {"key": self.key, "arm": "arm-0", "chart": "means", "id": told, "unit": "somebody", "message": self.message}
        target = re.sub(r"{(\w+)(:\w+)?}", lambda name: filled[name[1]], path)
        if route == ("DELETE", _E):
            target += f"?confirm={self.key}"
        body = _with_new_names(_BODIES.get(route))
        client = self.plain if fast else self.by_framework
        return client.send(method, target, body, **credential.sent)


def _with_new_names(body: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(body, dict):
        return {name: _with_new_names(value) for name, value in body.items()}
    if isinstance(body, list):
        return [_with_new_names(value) for value in body]
    return f"new-{next(_numbers)}" if body == "NEW" else body


@pytest.fixture(scope="module")
def place(keyed_server: Server, keyed_wire: JsonClient) -> Iterator[_Place]:
    """A running experiment on the service that has keys."""
    key, wire = "guarded", keyed_wire
    wire.create(key, arms=arms(2), sticky=True)
    told = {"observations": [{"arm": "arm-0", "reward": 1, "id": "told-1"}]}
    assert wire.send("POST", f"/v1/experiments/{key}/observations", told).status == 200
    wire.ask(key, "somebody")
    assignment = wire.ask(key, "somebody else")["id"]
    webhook, doomed = (wire.send("POST", "/v1/webhooks", QUIET_WEBHOOK).body["id"] for _ in range(2))
    message = wire.send("POST", f"/v1/webhooks/{webhook}/test").body["id"]
    spare, credentials, url = new_key(wire)["id"], of_each_kind(wire, key), keyed_server.url
    with JsonClient(url) as plain, JsonClient(url, by_framework=True) as by_framework, Rows(keyed_server.database_url) as rows:
        yield _Place(wire, plain, by_framework, key, assignment, spare, webhook, message, doomed, credentials, rows)


def _expected(route: Route, scope: Scope, credential: Credential) -> int | None:
    """The refusal; None where it is none."""
    if credential.public and (not credential.scopes or route not in _BY_UNIT):
        return 403
    if not credential.scopes:
        return 401
    if scope not in credential.scopes:
        return 403
    if credential.elsewhere and "{key}" in route[1]:
        return 404
    return 403 if credential.limited and route in _NEW_NAMES else None


@pytest.mark.parametrize("route", [route for route in ROUTE_SCOPES if not route[1].endswith("/stream")], ids=" ".join)
def test_the_right_answer_to_every_kind_of_key(place: _Place, route: Route) -> None:
    """401, 403 or 404 where it is a refusal, with nothing written; 2xx where it is none."""
    wrong: list[tuple[str, object, int | None]] = []
    for credential in place.credentials:
        expected = _expected(route, ROUTE_SCOPES[route], credential)
        before = place.rows.fingerprint() if expected else None
        answers = [place.send(route, credential, fast=fast) for fast in ((True, False) if route in _FAST else (False,))]
        for answer in answers:
            is_gone = answer.status == 404 and route == _DELETED_ONCE
            is_taken = 200 <= answer.status < 300 or (answer.status == 409 and route in _NOT_NOW)
            if expected is None and not (is_taken or is_gone):
                wrong.append((credential.name, "allowed", answer.status))
            elif expected is not None and answer.status != expected:
                wrong.append((credential.name, expected, answer.status))
            elif expected == 401 and answer.headers["www-authenticate"] != "Bearer":
                wrong.append((credential.name, "WWW-Authenticate", None))
        if before is not None and place.rows.fingerprint() != before:
            wrong.append((credential.name, "wrote", None))
    assert wrong == []


@pytest.mark.parametrize("route", [route for route in ROUTE_SCOPES if route[1].endswith("/stream")], ids=" ".join)
def test_a_stream_needs_a_key(place: _Place, route: Route) -> None:
    """The routes whose answers have no end: by their heads, and where they are refused as a whole."""
    expected = {one.name: _expected(route, ROUTE_SCOPES[route], one) for one in place.credentials}
    heads = {one.name: place.send(("HEAD", route[1]), one, fast=False).status for one in place.credentials}
    assert heads == {name: status or 200 for name, status in expected.items()}
    refused = [one for one in place.credentials if expected[one.name]]
    assert {one.name: place.send(route, one, fast=False).status for one in refused} == {
        one.name: heads[one.name] for one in refused
    }


def test_every_route_stands_in_the_table() -> None:
    """A new one is refused to everybody until it does; pages are the same for all, and say nothing by themselves."""
    pages = {"/", "/new", "/docs", "/keys", "/experiments/{key}", "/static/vocabulary.js"}
    routes = {
        (method, route.path)
        for route in each_route(create_app().routes)
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert routes - {("GET", page) for page in pages} == ROUTE_SCOPES.keys() | OPEN


def test_lists_show_what_a_key_may_see(place: _Place) -> None:
    """And nothing of what it may not: names, counts, tags, owners."""
    admin = place.admin
    admin.create("mine-1", arms=arms(2), tags=["mine"], owner="me@shop.example")
    admin.create("mine_1", arms=arms(2))
    admin.create("theirs-1", arms=arms(2), tags=["theirs"], owner="them@shop.example")
    secret = new_key(admin, experiments=["mine-*", "mine_1"])["secret"]
    mine = Credential("mine", secret).sent
    listed = place.plain.send("GET", "/v1/experiments?page_size=100", **mine).body
    assert {one["key"] for one in listed["experiments"]} == {"mine-1", "mine_1"}
    glance = place.plain.send("GET", "/dashboard/experiments", **mine).body
    assert {one["key"] for one in glance["experiments"]} == {"mine-1", "mine_1"}
    assert (glance["total"], glance["tags"], glance["owners"]) == (2, ["mine"], ["me@shop.example"])
