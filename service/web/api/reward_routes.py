"""Tell: what happened."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
from fastapi import APIRouter, Request, Response
from msgspec import structs
from pydantic import BaseModel, ValidationError

from service.application.commands import tell as tell_command
from service.application.commands.tell import ObservationItem, Observe, RewardItem, Tell, TellMany, TellResult, TellUnit
from service.domain.callers import Access
from service.domain.limits import LONGEST_UNIT
from service.errors import UnitNotFound
from service.web.api import answer_schemas, observation_stream, rendered_changes, request_schemas, views
from service.web.api.body import StrictRoute
from service.web.api.observation_stream import MEDIA_TYPE, is_stream
from service.web.api.parameters import (
    AccessOf,
    AssignmentId,
    ContextOf,
    IdempotencyKey,
    UnitName,
    json_response,
    once,
    rendered_response,
)
from service.web.problems import documented, sentence_of


class _Rewards(msgspec.Struct, forbid_unknown_fields=True):
    rewards: list[RewardItem]


class _Observations(msgspec.Struct, forbid_unknown_fields=True):
    observations: list[ObservationItem]


_OBSERVATIONS = "/v1/experiments/{key}/observations"
_WHOLE: dict[str, Callable[[bytes], msgspec.Struct]] = {
    "/v1/experiments/{key}/rewards": msgspec.json.Decoder(_Rewards).decode,
    _OBSERVATIONS: msgspec.json.Decoder(_Observations).decode,
}


class _BatchRoute(StrictRoute):
    """Long lists whose every item is good, as nearly always, are read at once; others, and those with a key, like any body."""

    def answer_to_stream(self, request: Request) -> Coroutine[Any, Any, Response] | None:
        """Observations may come as JSON lines, as many as there are."""
        return observation_stream.answer_stream(request) if self.path == _OBSERVATIONS and is_stream(request) else None

    def read(self, request: Request, body: bytes) -> Any:  # noqa: ANN401 - any JSON
        """The items as they are needed, or as plain JSON."""
        whole, headers = _WHOLE.get(self.path), request.headers
        plain = headers.get("content-type") == "application/json" and "idempotency-key" not in headers
        if whole is not None and plain and b"\\u0000" not in body:
            try:
                return structs.asdict(whole(body))
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass
        return super().read(request, body)


router = APIRouter(prefix="/v1/experiments/{key}", tags=["rewards"], route_class=_BatchRoute)
_UNREADABLE = (400, 413, 415, 422)
Item = TypeVar("Item", bound=msgspec.Struct)


async def _tell(context: ContextOf, access: Access, command: Tell | TellUnit) -> Response:
    told = await tell_command.tell(context, access, command)
    return json_response(views.assignment_view(told.experiment, told.arm, told.assignment))


@router.post(
    "/assignments/{id}/reward",
    response_model=answer_schemas.AssignmentOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
)
async def tell(context: ContextOf, access: AccessOf, id: AssignmentId, body: request_schemas.TellIn) -> Response:  # noqa: A002 - the contract's name
    """Record a reward. The same value again counts once; another value is a conflict."""
    return await _tell(context, access, Tell(id, "reward", body.reward))


@router.put(
    "/assignments/{id}/reward",
    response_model=answer_schemas.AssignmentOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
)
async def correct_reward(context: ContextOf, access: AccessOf, id: AssignmentId, body: request_schemas.TellIn) -> Response:  # noqa: A002 - see tell
    """Replace a reward, or bring a voided assignment back with one."""
    return await _tell(context, access, Tell(id, "correct", body.reward))


@router.delete("/assignments/{id}/reward", response_model=answer_schemas.AssignmentOut, responses=documented(404, 409, 503))
async def void_reward(context: ContextOf, access: AccessOf, id: AssignmentId) -> Response:  # noqa: A002 - see tell
    """Void an assignment: its draw leaves draws and observations."""
    return await _tell(context, access, Tell(id, "void"))


@router.post(
    "/units/{unit}/reward", response_model=answer_schemas.AssignmentOut, responses=documented(*_UNREADABLE, 404, 409, 503)
)
async def tell_by_unit(context: ContextOf, access: AccessOf, unit: UnitName, body: request_schemas.TellIn) -> Response:
    """Record the reward of a unit's assignment, for callers that know no id. The experiment must be sticky."""
    return await _tell(context, access, TellUnit(_unit(access, unit), "reward", body.reward))


@router.put(
    "/units/{unit}/reward", response_model=answer_schemas.AssignmentOut, responses=documented(*_UNREADABLE, 404, 409, 503)
)
async def correct_by_unit(context: ContextOf, access: AccessOf, unit: UnitName, body: request_schemas.TellIn) -> Response:
    """Replace the reward of a unit's assignment, or bring it back with one. Not with a public key."""
    return await _tell(context, access, TellUnit(_unit(access, unit), "correct", body.reward))


@router.delete("/units/{unit}/reward", response_model=answer_schemas.AssignmentOut, responses=documented(422, 404, 409, 503))
async def void_by_unit(context: ContextOf, access: AccessOf, unit: UnitName) -> Response:
    """Void a unit's assignment: its draw leaves draws and observations. Not with a public key."""
    return await _tell(context, access, TellUnit(_unit(access, unit), "void"))


def _unit(access: Access, unit: str) -> str:
    """The unit of a path, if there can be such a one: before it meets a database that could not even compare it."""
    if not 1 <= len(unit) <= LONGEST_UNIT or "\x00" in unit:
        raise UnitNotFound(access.key, unit)
    return unit


def _items(plain: type[Item], model: type[BaseModel], given: list[Any]) -> Sequence[Item | TellResult]:
    """All items at once if every one of them is good, as nearly always; else one by one, each with its own result."""
    try:
        return msgspec.convert(given, list[plain])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        return [_item(plain, model, one) for one in given]


def _item(plain: type[Item], model: type[BaseModel], given: Any) -> Item | TellResult:  # noqa: ANN401 - any JSON
    """The item, or why it cannot be read."""
    try:
        return plain(**model.model_validate(given).model_dump())
    except ValidationError as unreadable:
        first = unreadable.errors()[0]
        where = "".join(f"/{step}" for step in first["loc"])
        return TellResult("invalid", f"{where}: {sentence_of(first)}" if where else sentence_of(first))


@router.post("/rewards", response_model=answer_schemas.TellResultsOut, responses=documented(*_UNREADABLE, 404, 409, 503))
async def tell_batch(
    request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf, body: request_schemas.TellManyIn
) -> Response:
    """Record many rewards; each item has its own result."""
    items = _items(RewardItem, request_schemas.RewardItemIn, body.rewards)
    answered = once(request, "rewards", idempotency, creates=False, render=views.encode_results)
    return rendered_response(await rendered_changes.tell_many(context, access, TellMany(items), answered))


_LINE = '{"arm": "green", "reward": 1, "id": "import-77", "time": "2026-01-01T12:00:00Z"}\n'


@router.post(
    "/observations",
    response_model=answer_schemas.TellResultsOut | answer_schemas.ToldLinesOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
    openapi_extra={"requestBody": {"content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _LINE}}}},
)
async def observe(
    request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf, body: request_schemas.ObserveIn
) -> Response:
    """Record rewards of arms that the caller chose itself: a list, or JSON lines, as many as there are, which are summed up."""
    items = _items(ObservationItem, request_schemas.ObservationIn, body.observations)
    answered = once(request, "observations", idempotency, creates=False, render=views.encode_results)
    return rendered_response(await rendered_changes.tell_many(context, access, Observe(items), answered))
