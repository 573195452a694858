"""Ask: which arm to show."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Query, Request, Response

from service.application.commands import ask as ask_command
from service.application.reads import assignments
from service.application.reads.page_request import PageRequest
from service.domain.limits import LONGEST_NAME, LONGEST_UNIT
from service.web.api import answer_schemas, rendered_changes, rendered_pages, request_schemas, views
from service.web.api.body import StrictRoute
from service.web.api.parameters import (
    AccessOf,
    AssignmentId,
    ContextOf,
    ExperimentKey,
    IdempotencyKey,
    PageSize,
    PageToken,
    Window,
    json_response,
    once,
    rendered_response,
)
from service.web.problems import documented
from service.web.response_pieces import sent_in_pieces

router = APIRouter(prefix="/v1/experiments/{key}/assignments", tags=["assignments"], route_class=StrictRoute)
_UNREADABLE = (400, 413, 415, 422)
_NOBODY = request_schemas.AskIn()


@router.post(
    "",
    status_code=201,
    response_model=answer_schemas.AssignmentOut,
    responses=documented(*_UNREADABLE, 404, 409, 503) | {200: {"model": answer_schemas.AssignmentOut}},
)
async def ask(
    context: ContextOf,
    idempotency: IdempotencyKey,
    access: AccessOf,
    body: Annotated[request_schemas.AskIn, Body()] = _NOBODY,
) -> Response:
    """Draw an arm. 200 instead of 201 when nothing was drawn: a sticky unit asked again, a concluded experiment."""
    answer = await ask_command.ask(context, access, body.unit, idempotency)
    headers = {"Idempotency-Replayed": "true"} if answer.replayed else None
    return json_response(views.answer_view(answer), 201 if answer.created else 200, headers)


@router.post(
    "/batch",
    status_code=201,
    response_model=answer_schemas.AssignmentsOut,
    responses=documented(*_UNREADABLE, 404, 409, 503) | {200: {"model": answer_schemas.AssignmentsOut}},
)
async def ask_batch(
    request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf, body: request_schemas.AskManyIn
) -> Response:
    """Draw many arms, all or nothing. 200 instead of 201 when nothing was drawn.

    Where the values would take more than 1 MiB, because many assignments repeat them, each assignment's `value` is null and
    `values` gives the value of each arm once.
    """
    units = [None] * (body.count or 0) if body.units is None else body.units
    answered = once(
        request,
        "assignments/batch",
        idempotency,
        creates=ask_command.creates,
        render=views.encode_answers,
        note=ask_command.note_of,
    )
    return rendered_response(await rendered_changes.ask_many(context, access, units, answered, by_count=body.units is None))


@router.get("/{id}", response_model=answer_schemas.AssignmentOut, responses=documented(404, 503))
async def get_assignment(context: ContextOf, key: ExperimentKey, id: AssignmentId) -> Response:  # noqa: A002 - the contract's name
    """One assignment."""
    arm, assignment = await assignments.assignment(context, key, id)
    return json_response(views.assignment_view(key, arm, assignment))


@router.get("", response_model=answer_schemas.AssignmentPage, responses=documented(404, 422, 503))
async def list_assignments(
    context: ContextOf,
    key: ExperimentKey,
    before: PageToken,
    window: Window,
    *,
    page_size: PageSize = 20,
    status: Literal["pending", "rewarded", "expired", "voided"] | None = None,
    arm: Annotated[str | None, Query(max_length=LONGEST_NAME)] = None,
    unit: Annotated[str | None, Query(max_length=LONGEST_UNIT)] = None,
) -> Response:
    """Assignments, newest first.

    A page looks at a bounded number of assignments: with a filter it may hold fewer than asked for, or none, while
    `next_page_token` says that there is more to look at.
    """
    wanted, page = assignments.AssignmentFilter(status, arm, unit), PageRequest(before, page_size, window)
    return sent_in_pieces(await rendered_pages.assignments_page(context, key, wanted, page))
