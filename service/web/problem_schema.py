"""The shape of every error, for the OpenAPI document."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    model_config = ConfigDict(extra="forbid")

    pointer: str
    detail: str


class Problem(BaseModel):
    """An error (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: list[FieldProblem] = []
