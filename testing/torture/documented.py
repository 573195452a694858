"""Requests made from the OpenAPI document, one by one and in conversations along its links: every answer is a documented one."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.strategies import SearchStrategy
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi import checks

from service.main import create_app
from testing.json_client import JsonClient, arms
from testing.server import ADMIN_KEY, Server, bearer
from testing.torture.nearly_right import NEARLY_RIGHT, nearly_right

SCHEMA = schemathesis.openapi.from_dict(create_app().openapi())
OPERATIONS: dict[str, Any] = {
    operation.definition.raw["operationId"]: operation
    for found in SCHEMA.get_all_operations()
    for operation in [cast("Any", found).ok()]  # a document with an error in it fails here
    if not operation.path.endswith("/stream")  # its answer has no end
}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
    checks.missing_required_header,
    checks.unsupported_method,
    checks.allow_header_conformance,
    checks.ignored_auth,
]
# What is created is there, and what is deleted is gone: of conversations.
_OF_CONVERSATIONS = [*CHECKS, checks.use_after_free, checks.ensure_resource_availability]
_STEPS, _TOGETHER = 12, 10
_ONE_BY_ONE = 0.75
_TRACE = b"Traceback (most recent call last)"


@dataclass(slots=True)
class Documented:
    """What was played, and what was answered otherwise than the document says."""

    cases: int = 0
    in_conversations: int = 0
    """Of these, requests that went on from an answer, or were gone on from."""
    statuses: Counter[int] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """For the table."""
        return {**asdict(replace(self, statuses=Counter())), "statuses": dict(self.statuses)}

    def note(self, status: int, content: bytes) -> None:
        """One answer."""
        self.cases += 1
        self.statuses[status] += 1
        if _TRACE in content:
            self.violations.append(f"a traceback: {content[:300]!r}")

    def judge(self, case: schemathesis.Case[Any], response: Any, judged_by: Sequence[Any], **sent: Any) -> None:  # noqa: ANN401
        """Keep what a check says, and go on: another request may break something else."""
        try:
            case.validate_response(response, checks=[*judged_by], **sent)
        except (AssertionError, Failure, FailureGroup) as broken:
            self.violations.append(f"{case.operation.label}: {broken} {getattr(broken, 'exceptions', '')}"[:2_000])


def play(server: Server, cases: int) -> Documented:
    """About so many requests to this service, whose key is ADMIN_KEY: three quarters one by one, the others in conversations."""
    found = Documented()
    with JsonClient(server.url, key=ADMIN_KEY) as client:
        each = max(1, round(_ONE_BY_ONE * cases / len(OPERATIONS)))
        for number, name in enumerate(OPERATIONS):
            keys = f"o{number}", f"o{number}-flag"
            client.create(keys[0], arms=arms(2))
            client.create(keys[1], arms=arms(2), sticky=True, ofrep={"bulk": True})
            strategy = OPERATIONS[name].as_strategy()
            _caught(found, lambda: send_all(found, server.url, strategy, each, keys))  # noqa: B023 - called here
        for name in NEARLY_RIGHT:
            key = client.create(f"nearly-{name.replace('_', '-')}", arms=arms(2), sticky=True)["key"]
            assignment = client.ask(key, unit="user-42")["id"]
            _caught(found, lambda: send_all(found, server.url, nearly_right_cases(name, assignment), 2 * each, (key, key)))  # noqa: B023
    before = found.cases
    _caught(found, lambda: converse(found, server.url, max(1, (cases - before) // _STEPS)))
    found.in_conversations = found.cases - before
    return found


def nearly_right_cases(name: str, assignment: str) -> SearchStrategy[schemathesis.Case[Any]]:
    """Requests of this operation with bodies that are right but for a thing or two."""
    operation = OPERATIONS[name]
    identity = {"id": assignment} if "{id}" in operation.path else {}
    return nearly_right(name).map(
        lambda body: operation.Case(path_parameters={"key": "", **identity}, body=body, media_type="application/json")
    )


def send_all(
    found: Documented, url: str, strategy: SearchStrategy[schemathesis.Case[Any]], count: int, keys: tuple[str, str]
) -> None:
    """So many of these requests about these experiments, the second a flag."""

    @seed(count)
    @given(case=strategy)
    @_settings(count)
    def send(case: schemathesis.Case[Any]) -> None:
        if "{key}" in case.path:
            case.path_parameters["key"] = keys["/ofrep/" in case.path]
        response = case.call(base_url=url, headers=bearer(ADMIN_KEY))
        found.note(response.status_code, response.content)
        found.judge(case, response, CHECKS)

    send()


def converse(found: Documented, url: str, conversations: int) -> None:
    """Conversations of a few requests, each from an answer to one before it."""
    machine = SCHEMA.as_state_machine()

    class Conversation(machine):  # type: ignore[valid-type, misc] # made of the document
        def get_call_kwargs(self, case: schemathesis.Case[Any]) -> dict[str, Any]:  # noqa: ARG002 - the same for every case
            return {"base_url": url, "headers": bearer(ADMIN_KEY)}

        def after_call(self, response: Any, case: schemathesis.Case[Any]) -> None:  # noqa: ANN401 - schemathesis'
            super().after_call(response, case)
            found.note(response.status_code, response.content)

        def validate_response(self, response: Any, case: schemathesis.Case[Any], **sent: Any) -> None:  # noqa: ANN401
            found.judge(case, response, _OF_CONVERSATIONS, transport_kwargs=sent)

    for begin in range(0, conversations, _TOGETHER):
        chosen = settings(_settings(min(_TOGETHER, conversations - begin)), stateful_step_count=_STEPS)
        # What comes next depends on what was answered, and answers differ: hypothesis ends there, and begins anew.
        with suppress(FlakyStrategyDefinition):
            Conversation.run(settings=chosen)


def _settings(count: int) -> settings:
    return settings(
        max_examples=count, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )


def _caught(found: Documented, work: Callable[[], None]) -> None:
    """What an operation breaks is kept, and the others are played all the same."""
    try:
        work()
    except Exception as broken:  # noqa: BLE001 - whatever it is, it is said at the end
        last = "".join(traceback.format_exception(broken))[-1_500:]
        found.violations.append(f"{broken}: {last}")
