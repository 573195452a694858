"""The OpenAPI document: part of the contract."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from service.main import create_app

DOCUMENT: dict[str, Any] = create_app().openapi()
OPERATIONS = [(path, method, operation) for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()]
every_operation = pytest.mark.parametrize(
    ("path", "method", "operation"), OPERATIONS, ids=[operation["operationId"] for _, _, operation in OPERATIONS]
)


def test_operation_ids_are_short_and_unique() -> None:
    """An operation is called by its function's name, as generated clients will."""
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) and len(name) <= 24 for name in ids)
    assert {"create_experiment", "get_experiment", "ask", "ask_batch", "tell", "get_recommendation"} <= set(ids)


def test_every_reference_leads_somewhere() -> None:
    """No schema is named that the document does not hold."""
    known = DOCUMENT["components"]["schemas"]
    named = set(re.findall(r"#/components/schemas/([^\"]+)", json.dumps(DOCUMENT)))
    assert named <= set(known)
    assert "Problem" in named
    assert not {"HTTPValidationError", "ValidationError"} & set(known), "errors have one shape, which is not the framework's"


@every_operation
def test_an_operation_documents_its_errors(path: str, method: str, operation: dict[str, Any]) -> None:
    """Tags, a sentence, and every error in the one shape: 404 below a key, 422 and 413 with a body, 503 everywhere."""
    assert operation["tags"]
    assert operation["summary"]
    if path in ("/healthz", "/metrics"):  # they need no database
        return
    answers = {int(status): answer for status, answer in operation["responses"].items()}
    expected = {503}
    if "{key}" in path:
        expected.add(404)
    if "requestBody" in operation:
        expected |= {400, 413, 415, 422}
    if any(parameter["in"] == "query" for parameter in operation.get("parameters", [])):
        expected.add(422)
    if method != "get" and "{key}" in path:
        expected.add(409)
    assert expected <= set(answers)
    for status, answer in answers.items():
        if status >= 400:
            assert list(answer["content"]) == ["application/problem+json"], status


@every_operation
def test_a_body_has_an_example(path: str, method: str, operation: dict[str, Any]) -> None:
    """Every body that may be sent is shown once."""
    for body in [operation.get("requestBody")]:
        if body is None:
            continue
        schema = body["content"]["application/json"]["schema"]
        names = re.findall(r"#/components/schemas/(\w+)", json.dumps(schema))
        assert any("examples" in DOCUMENT["components"]["schemas"][name] for name in names), f"{method} {path}"
