"""Requests made from the OpenAPI document, good and bad: never a 5xx, and every answer is one that is documented."""

from __future__ import annotations

from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from service.main import create_app
from testing.json_client import JsonClient, arms
from testing.server import ADMIN_KEY, Server, bearer

SCHEMA = schemathesis.openapi.from_dict(create_app().openapi())
OPERATIONS = {
    operation.definition.raw["operationId"]: operation
    for found in SCHEMA.get_all_operations()
    for operation in [cast("Any", found).ok()]  # a document with an error in it fails here
    if not operation.path.endswith("/stream")  # its answer has no end
}
_FLAG = "a-flag"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
    missing_required_header,
    unsupported_method,
    allow_header_conformance,
    ignored_auth,
]


@pytest.fixture(scope="session")
def fuzzed(keyed_server: Server, keyed_wire: JsonClient) -> str:
    """The running service, with an experiment of the key that the examples use, and a flag."""
    keyed_wire.create("checkout-button", arms=arms(2))
    keyed_wire.create(_FLAG, arms=arms(2), sticky=True, ofrep={"bulk": True})
    return keyed_server.url


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_breaks_the_service(fuzzed: str, name: str) -> None:
    """Whatever is sent, the answer is a documented one in a documented shape."""

    @given(case=OPERATIONS[name].as_strategy())
    @settings(
        max_examples=12,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def send(case: schemathesis.Case[Any]) -> None:
        if "key" in case.path_parameters:
            case.path_parameters["key"] = _FLAG if "/ofrep/" in case.path else "checkout-button"
        response = case.call(base_url=fuzzed, headers=bearer(ADMIN_KEY))
        case.validate_response(response, checks=CHECKS)

    send()


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
