"""The OpenAPI document: part of the contract."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest

from service.domain import AUDITED, Move, PolicyKind, RewardKind
from service.domain.limits import KEY_PATTERN
from service.main import create_app
from service.web.access.route_scopes import OPEN
from service.web.api.answer_schemas import EventPage, ExperimentOut
from testing.json_client import JsonClient, arms

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
    """Tags, a sentence, and every error in the one shape.

    404 below a key, 413 with a body, 401, 403 and 429 where a key is needed, and everywhere what the connection and the framework
    refuse. OpenFeature's routes have the statuses and the shapes of their protocol.
    """
    assert operation["tags"]
    assert operation["summary"]
    answers = {int(status): answer for status, answer in operation["responses"].items()}
    if path.startswith("/ofrep/"):
        refused = {400, 401, 403, 500} | (set() if path.endswith("/stream") else {404, 429})  # an EventSource reads no other
        assert {status for status in answers if status >= 400} == refused
        return
    expected = {400, 405, 408, 421, 422, 431, 500, 503}
    if (method.upper(), path) in OPEN:
        assert not {401, 403, 429} & set(answers)
        assert "security" not in operation
    else:
        expected |= {401, 403, 429}
    if "{key}" in path:
        expected.add(404)
    if "requestBody" in operation:
        expected |= {400, 413, 415, 422}
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


def test_links_lead_to_operations_with_all_that_their_paths_need() -> None:
    """And the answers and requests that they are from have what they name."""
    by_name = {operation["operationId"]: (path, operation) for path, _, operation in OPERATIONS}
    links = [
        (operation, answer, link)
        for _, _, operation in OPERATIONS
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert {"create_experiment", "ask", "create_webhook"} <= {operation["operationId"] for operation, _, _ in links}
    for source, answer, link in links:
        path, target = by_name[link["operationId"]]
        assert {*re.findall(r"{(\w+)}", path)} <= link["parameters"].keys() <= {one["name"] for one in target["parameters"]}
        shape = DOCUMENT["components"]["schemas"][answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
        for expression in link["parameters"].values():
            where, name = re.split("[#.]/?(?=[a-z]+$)", expression)
            known = shape["properties"] if where == "$response.body" else {one["name"] for one in source["parameters"]}
            assert name in known


def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][name]
    return found


def test_policies_and_rewards_of_answers_are_told_apart_by_their_kind() -> None:
    """A generated client has a class for each, with its own parameters."""
    for field, kinds in (("policy", set(get_args(PolicyKind))), ("reward", set(get_args(RewardKind)))):
        union = _schema("ExperimentOut")["properties"][field]
        assert union["discriminator"]["propertyName"] == "kind"
        assert set(union["discriminator"]["mapping"]) == kinds
        assert {one["$ref"] for one in union["oneOf"]} == set(union["discriminator"]["mapping"].values())


@pytest.mark.parametrize(
    ("policy", "reward"),
    [
        ({"kind": "simple_tracking"}, {"kind": "binary"}),
        ({"kind": "almost_tracking", "batch_size": 7}, {"kind": "real", "goal": "minimize"}),
        ({"kind": "uniform"}, {"kind": "bounded", "min": 0, "max": 2}),
    ],
)
def test_an_experiment_is_of_the_documented_shape(wire: JsonClient, key: str, policy: Any, reward: Any) -> None:  # noqa: ANN401
    """Every kind of policy and of reward, field by field, and nothing besides."""
    created = wire.create(key, arms=arms(2), policy=policy, reward=reward)
    shown = ExperimentOut.model_validate_json(json.dumps(created))
    assert shown.model_dump(mode="json").keys() == created.keys()
    wire.send("POST", f"/v1/experiments/{key}/pause")
    EventPage.model_validate_json(json.dumps(wire.send("GET", f"/v1/experiments/{key}/events").body))


def test_the_kinds_of_events_are_listed() -> None:
    """Those of the audit log, all of them, and no other."""
    assert _schema("EventOut")["properties"]["kind"]["enum"] == list(AUDITED)


def test_limits_are_part_of_the_document() -> None:
    """Patterns of keys and ids, lengths of texts, sizes of lists: in paths, headers, bodies and answers."""
    for path, _, operation in OPERATIONS:
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path" and path.startswith("/v1"):
                assert parameter["schema"].keys() & {"pattern", "maxLength", "enum"}, parameter
            if parameter["schema"].get("type") == "string" and parameter["name"] != "If-None-Match":
                assert parameter["schema"].keys() & {"pattern", "maxLength", "enum"}, parameter
            if parameter["name"] == "If-Match":
                assert parameter["schema"]["anyOf"][0]["maxLength"] == 1000
            if parameter["name"] == "confirm":
                assert parameter["schema"]["maxLength"] == 64
            if parameter["name"] == "Idempotency-Key":
                assert (parameter["schema"]["maxLength"], parameter["schema"]["pattern"]) == (255, "^[ -~]+$")
            if parameter["name"] == "page_size":
                assert parameter["schema"]["maximum"] == 1000
    assert _schema("ExperimentOut")["properties"]["key"]["pattern"] == f"^{KEY_PATTERN}$"
    assert _schema("ExperimentIn")["properties"]["tags"]["maxItems"] == 20


def test_lifecycle_steps_and_changes_document_their_headers() -> None:
    """Idempotency-Key where a step can be sent again, If-Match where a change can be made conditional."""
    headers = {
        operation["operationId"]: {one["name"] for one in operation.get("parameters", []) if one["in"] == "header"}
        for _, _, operation in OPERATIONS
    }
    for move in get_args(Move):
        assert headers[f"{move}_experiment"] == {"Idempotency-Key"}
    assert headers["patch_experiment"] == headers["patch_arm"] == headers["delete_experiment"] == {"If-Match"}
