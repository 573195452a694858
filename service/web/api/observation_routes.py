"""Observations that were told: read, corrected and voided."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.convertors import Convertor, register_url_convertor

from service.application.commands import observations
from service.application.commands.observations import ChangeObservation
from service.application.reads import observation_list
from service.application.reads.page_request import PageRequest
from service.domain.callers import Access
from service.domain.limits import LONGEST_NAME, LONGEST_OBSERVATION_ID
from service.errors import ObservationNotFound
from service.web.api import answer_schemas, rendered_pages, request_schemas, views
from service.web.api.body import StrictRoute
from service.web.api.parameters import (
    AccessOf,
    ContextOf,
    ExperimentKey,
    ObservationId,
    PageSize,
    PageToken,
    Window,
    json_response,
)
from service.web.problems import documented
from service.web.response_pieces import sent_in_pieces


class _AnyText(Convertor[str]):
    """Ids are the caller's own: they may hold slashes and line breaks."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        """The id, as the path has it."""
        return value

    def to_string(self, value: str) -> str:
        """The id, as a path may have it."""
        return value


register_url_convertor("any_text", _AnyText())
router = APIRouter(prefix="/v1/experiments/{key}/observations", tags=["rewards"], route_class=StrictRoute)
_UNREADABLE = (400, 413, 415, 422)


async def _show(context: ContextOf, access: Access, name: str, command: ChangeObservation | None = None) -> Response:
    if not 1 <= len(name) <= LONGEST_OBSERVATION_ID or "\x00" in name:
        raise ObservationNotFound(access.key, name)  # before it meets a database that could not even compare it
    known = None if command is None else await observations.change(context, access, command)
    return json_response(views.observation_view(access.key, await observation_list.observation(context, access.key, name, known)))


@router.get("", response_model=answer_schemas.ObservationPage, responses=documented(404, 422, 503))
async def list_observations(
    context: ContextOf,
    key: ExperimentKey,
    before: PageToken,
    window: Window,
    *,
    page_size: PageSize = 20,
    arm: Annotated[str | None, Query(max_length=LONGEST_NAME)] = None,
) -> Response:
    """Observations, newest first, with an id or without.

    A page looks at a bounded number of observations: with a filter it may hold fewer than asked for, or none, while
    `next_page_token` says that there is more to look at.
    """
    return sent_in_pieces(await rendered_pages.observations_page(context, key, arm, PageRequest(before, page_size, window)))


@router.get("/{id:any_text}", response_model=answer_schemas.ObservationOut, responses=documented(404, 503))
async def get_observation(context: ContextOf, access: AccessOf, id: ObservationId) -> Response:  # noqa: A002 - the contract's name
    """One observation, by the id that it was told with."""
    return await _show(context, access, id)


@router.put("/{id:any_text}", response_model=answer_schemas.ObservationOut, responses=documented(*_UNREADABLE, 404, 409, 503))
async def correct_observation(
    context: ContextOf,
    access: AccessOf,
    id: ObservationId,  # noqa: A002 - the contract's name
    body: request_schemas.TellIn,
) -> Response:
    """Replace the reward of an observation, or bring a voided one back with one."""
    return await _show(context, access, id, ChangeObservation(id, reward=body.reward))


@router.delete("/{id:any_text}", response_model=answer_schemas.ObservationOut, responses=documented(404, 409, 503))
async def void_observation(context: ContextOf, access: AccessOf, id: ObservationId) -> Response:  # noqa: A002 - the contract's name
    """Void an observation: it leaves draws and observations."""
    return await _show(context, access, id, ChangeObservation(id, void=True))
