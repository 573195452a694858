"""Requests made from the OpenAPI document, good and bad: never a 5xx, and every answer is one that is documented."""

from __future__ import annotations

import pytest

from testing.json_client import JsonClient, arms
from testing.server import ADMIN_KEY, Server, bearer
from testing.torture.documented import CHECKS, OPERATIONS, Documented, converse, nearly_right_cases, send_all
from testing.torture.nearly_right import NEARLY_RIGHT

_EXPERIMENT, _FLAG = "checkout-button", "a-flag"


@pytest.fixture(scope="session")
def fuzzed(keyed_server: Server, keyed_wire: JsonClient) -> str:
    """The running service, with an experiment of the key that the examples use, and a flag."""
    keyed_wire.create(_EXPERIMENT, arms=arms(2))
    keyed_wire.create(_FLAG, arms=arms(2), sticky=True, ofrep={"bulk": True})
    return keyed_server.url


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_breaks_the_service(fuzzed: str, name: str) -> None:
    """Whatever is sent, the answer is a documented one in a documented shape."""
    found = Documented()
    send_all(found, fuzzed, OPERATIONS[name].as_strategy(), 12, (_EXPERIMENT, _FLAG))
    assert found.cases > 0
    assert found.violations == []


@pytest.mark.parametrize("name", NEARLY_RIGHT)
def test_bodies_that_are_nearly_right(fuzzed: str, name: str) -> None:
    """Asks, tells, batches and new experiments with a thing or two changed: done, or refused as documented."""
    found = Documented()
    send_all(found, fuzzed, nearly_right_cases(name, "asg_" + "0" * 27), 20, (_FLAG, _FLAG))
    assert found.violations == []
    assert {status // 100 for status in found.statuses} <= {2, 4}


def test_conversations_along_the_links(fuzzed: str) -> None:
    """From an answer to the next request: what was created is there, what was deleted is gone."""
    found = Documented()
    converse(found, fuzzed, 5)
    assert found.cases > 5
    assert found.violations == []


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.path.startswith("/ofrep/")])
def test_an_evaluation_that_succeeds_is_as_documented(fuzzed: str, name: str) -> None:
    """Most contexts that are made up name no unit: here is one that does."""
    operation = OPERATIONS[name]
    key = {"key": _FLAG} if "{key}" in operation.path else {}
    body = {"context": {"targetingKey": "user-42", "country": "DE"}}
    case = operation.Case(path_parameters=key, body=body, media_type="application/json")
    response = case.call(base_url=fuzzed, headers=bearer(ADMIN_KEY))
    assert response.status_code == 200
    assert "SPLIT" in response.text
    case.validate_response(response, checks=CHECKS)
