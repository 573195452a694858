"""Ask: which arm to show."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Query, Request, Response

from service.application import asks, looks
from service.web import schemas, views
from service.web.body import StrictRoute
from service.web.problems import documented
from service.web.requests import (
    ContextOf,
    IdempotencyKey,
    Paged,
    PageSize,
    PageToken,
    json_response,
    once,
    rendered_response,
)

router = APIRouter(prefix="/v1/experiments/{key}/assignments", tags=["assignments"], route_class=StrictRoute)
_UNREADABLE = (400, 413, 415, 422)
_NOBODY = schemas.AskIn()


@router.post(
    "",
    status_code=201,
    response_model=schemas.AssignmentOut,
    responses=documented(*_UNREADABLE, 404, 409, 503) | {200: {"model": schemas.AssignmentOut}},
)
async def ask(
    context: ContextOf,
    idempotency: IdempotencyKey,
    key: str,
    body: Annotated[schemas.AskIn, Body()] = _NOBODY,
) -> Response:
    """Draw an arm. 200 instead of 201 when nothing was drawn: a sticky unit asked again, a concluded experiment."""
    answer = await asks.ask(context, key, body.unit, idempotency)
    headers = {"Idempotency-Replayed": "true"} if answer.replayed else None
    return json_response(views.answer_view(answer), 201 if answer.created else 200, headers)


@router.post(
    "/batch",
    status_code=201,
    response_model=schemas.AssignmentsOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
)
async def ask_batch(
    request: Request, context: ContextOf, idempotency: IdempotencyKey, key: str, body: schemas.AskManyIn
) -> Response:
    """Draw many arms, all or nothing."""

    def render(answers: list[asks.Answer]) -> bytes:
        return views.encode({"assignments": [views.answer_view(answer) for answer in answers]})

    units = [None] * (body.count or 0) if body.units is None else body.units
    answered = once(request, "assignments/batch", idempotency, 201, render, note=asks.note_of)
    rendered = await asks.ask_many(context, key, units, answered, by_count=body.units is None)
    return rendered_response(rendered)


@router.get("/{id}", response_model=schemas.AssignmentOut, responses=documented(404, 503))
async def get_assignment(context: ContextOf, key: str, id: str) -> Response:  # noqa: A002 - the contract's name
    """One assignment."""
    arm, assignment = await looks.assignment(context, key, id)
    return json_response(views.assignment_view(key, arm, assignment))


@router.get("", response_model=schemas.AssignmentPage, responses=documented(404, 422, 503))
async def list_assignments(
    context: ContextOf,
    key: str,
    before: PageToken,
    *,
    page_size: PageSize = 20,
    status: Literal["pending", "rewarded", "expired", "voided"] | None = None,
    arm: str | None = None,
    unit: Annotated[str | None, Query(max_length=255)] = None,
) -> Response:
    """Assignments, newest first."""
    wanted = looks.AssignmentFilter(status, arm, unit)
    arms, found = await looks.assignments(context, key, wanted, before=before, limit=page_size + 1)
    page = Paged.of(found, page_size, lambda assignment: assignment.draw)
    shown = [views.assignment_view(key, arms[assignment.arm], assignment) for assignment in page.items]
    return json_response({"assignments": shown, "next_page_token": page.next_page_token})
