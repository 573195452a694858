"""What OFREP sends and gets, in its own words (protocol 0.3.0)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from service import __version__
from service.application.commands.evaluate import Evaluation

Reason = Literal["SPLIT", "STATIC", "DISABLED"]
ErrorCode = Literal["PARSE_ERROR", "TARGETING_KEY_MISSING", "INVALID_CONTEXT", "GENERAL", "FLAG_NOT_FOUND"]
Scalar = bool | str | int | float
# Of a success without an arm: providers expect a variant in every one.
DISABLED_VARIANT = "disabled"


class EvaluationIn(BaseModel):
    """Who a flag is evaluated for; whatever else a context holds is not looked at, and not kept."""

    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"examples": [{"context": {"targetingKey": "user-42", "country": "DE"}}]}
    )

    context: (
        Annotated[dict[str, JsonValue], Field(json_schema_extra={"properties": {"targetingKey": {"type": "string"}}})] | None
    ) = None


class EvaluationSuccess(BaseModel):
    """A flag's value; left out where the code's own default is meant."""

    key: str
    value: JsonValue = None
    variant: str
    reason: Reason
    metadata: dict[str, Scalar]


class EvaluationFailure(BaseModel):
    """Why a flag has none."""

    key: str
    errorCode: ErrorCode  # noqa: N815 - the protocol's name
    errorDetails: str  # noqa: N815 - the protocol's name


class StreamEndpoint(BaseModel):
    """Where to listen, below the address that the provider knows."""

    requestUri: str  # noqa: N815 - the protocol's name


class EventStream(BaseModel):
    """Server-sent events that say when to evaluate again."""

    type: Literal["sse"]
    endpoint: StreamEndpoint


class BulkEvaluation(BaseModel):
    """All flags of a page."""

    flags: list[EvaluationSuccess | EvaluationFailure]
    eventStreams: list[EventStream] = []  # noqa: N815 - the protocol's name; pydantic copies it


class ServerFailure(BaseModel):
    """Our fault, or a moment's."""

    errorDetails: str  # noqa: N815 - the protocol's name


def success_view(found: Evaluation) -> dict[str, Any]:
    """An evaluation in the protocol's words. Metadata are scalars; a number that was a float stays one."""
    metadata: dict[str, Any] = {"policy": found.policy, "version": __version__}
    if found.answer is None:
        return {"key": found.flag, "variant": DISABLED_VARIANT, "reason": "DISABLED", "metadata": metadata}
    arm, assignment = found.answer.arm, found.answer.assignment
    if assignment is not None:
        metadata |= {"assignmentId": assignment.id, "draw": assignment.draw, "experimentVersion": assignment.sequence}
    return {
        "key": found.flag,
        "value": arm.key if arm.value is None else arm.value,
        "variant": arm.key,
        "reason": found.status.upper(),
        "metadata": metadata,
    }
