"""Evaluate flags: the protocol's own routes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Response

from service.application.commands.evaluate import Evaluation, evaluate, evaluate_all
from service.application.live import flag_changes
from service.domain.limits import LONGEST_UNIT
from service.errors import BestArmError, DatabaseUnavailable, ExperimentNotFound, InvalidValue, Overloaded, UnitRequired
from service.web import etags
from service.web.access.credentials import FLAG_STREAM
from service.web.access.stream_tokens import token_for
from service.web.api import views
from service.web.api.body import StrictRoute
from service.web.api.content_etags import etag_of_content
from service.web.api.parameters import AccessOf, CallerOf, ContextOf, json_response
from service.web.ofrep import evaluation_schemas as schemas

router = APIRouter(prefix="/ofrep/v1/evaluate/flags", tags=["OpenFeature"], route_class=StrictRoute)
_NOBODY = schemas.EvaluationIn()
_FAILED: dict[str, Any] = {"description": "Why not.", "model": schemas.EvaluationFailure}
_EMPTY: dict[str, Any] = {"description": "Without a body."}
RESPONSES: dict[int | str, dict[str, Any]] = {
    400: _FAILED,
    401: _EMPTY,
    403: _EMPTY,
    404: _FAILED,
    429: {"description": "Too many requests: `Retry-After` says for how many seconds to wait."},
    500: {"description": "Our fault, or a moment's: then `Retry-After` says for how long.", "model": schemas.ServerFailure},
}


def unit_in(given: schemas.EvaluationIn) -> str:
    """The unit that a context names by its targeting key."""
    unit = (given.context or {}).get("targetingKey")
    if unit is None or unit == "":
        raise UnitRequired("`context.targetingKey` says for whom the flag is evaluated.")
    if not isinstance(unit, str) or len(unit) > LONGEST_UNIT:
        raise InvalidValue("/context/targetingKey", f"A targeting key is a text of at most {LONGEST_UNIT} characters.")
    return unit


def _item(flag: str, found: Evaluation | BestArmError) -> dict[str, object]:
    """A flag's value, or why it has none: what happened to one flag is no failure of the others."""
    if isinstance(found, Evaluation):
        return schemas.success_view(found)
    if isinstance(found, (Overloaded, DatabaseUnavailable)):
        raise found
    code = "FLAG_NOT_FOUND" if isinstance(found, ExperimentNotFound) else "INVALID_CONTEXT"
    return {"key": flag, "errorCode": code, "errorDetails": str(found)}


@router.post(
    "",
    response_model=schemas.BulkEvaluation,
    response_model_exclude_unset=True,
    responses=RESPONSES | {304: {"description": "The same arms as the ETag's."}},
)
async def evaluate_flags(
    context: ContextOf,
    caller: CallerOf,
    body: Annotated[schemas.EvaluationIn, Body()] = _NOBODY,
    *,
    if_none_match: Annotated[str | None, Header()] = None,
    etag_known: Annotated[str | None, Query(alias="flagConfigEtag")] = None,  # noqa: ARG001 - for servers that cache
    modified: Annotated[str | None, Query(alias="flagConfigLastModified")] = None,  # noqa: ARG001 - as above
) -> Response:
    """All flags that opted in (`ofrep: {"bulk": true}` on the experiment) for `context.targetingKey`: for each a draw, once."""
    unit = unit_in(body)
    since = await flag_changes.state_of_flags(context, caller.experiments)  # before: what changes from here on will be told
    flags = await evaluate_all(context, caller, unit)
    shown = [_item(flag, found) for flag, found in flags.items()]
    answer: dict[str, object] = {"flags": shown}
    token = token_for(context.callers, caller)
    # Who has no stored key has no token, and nothing else is good for a stream where keys are: it would be refused for ever.
    has_stream = context.flag_streams.has_place() and (token is not None or caller.id is None)
    if has_stream:
        address = f"{FLAG_STREAM}?since={since}" + (f"&token={token}" if token else "")
        answer["eventStreams"] = [{"type": "sse", "endpoint": {"requestUri": address}}]
    # A 304 leaves a page with the stream that it was given: it must still be there. From where to listen is no reason for another
    # answer; a page that comes with an older fingerprint evaluates once more.
    etag = etag_of_content(views.encode([shown, has_stream, token]))
    if etags.matches(if_none_match, etag):
        return etags.not_modified(etag)
    return json_response(answer, headers={"ETag": etag, "Cache-Control": "no-cache"})


@router.post("/{key}", response_model=schemas.EvaluationSuccess, response_model_exclude_unset=True, responses=RESPONSES)
async def evaluate_flag(
    context: ContextOf, access: AccessOf, body: Annotated[schemas.EvaluationIn, Body()] = _NOBODY
) -> Response:
    """The arm of a sticky experiment for `context.targetingKey`, as a flag. Evaluating again is no new exposure."""
    return json_response(schemas.success_view(await evaluate(context, access, unit_in(body))))
