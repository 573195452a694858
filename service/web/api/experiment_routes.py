"""Experiments and their arms."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response

from service.application.commands.lifecycle import LifecycleMove
from service.application.reads import experiment_descriptions
from service.domain import ExperimentStatus
from service.domain.callers import Access
from service.domain.limits import KEY_PATTERN, LONGEST_KEY, LONGEST_NAME, LONGEST_OWNER
from service.storage.queries.experiment_list import ExperimentFilter, ExperimentOrder
from service.web.api import answer_schemas, rendered_changes, rendered_experiments, request_schemas, views
from service.web.api.body import StrictRoute
from service.web.api.content_etags import arm_etag, experiment_etag
from service.web.api.new_experiments import arm_of, expiry_of, new_experiment, policy_of, reward_of, rule_of
from service.web.api.parameters import (
    AccessOf,
    ArmKey,
    CallerOf,
    ContextOf,
    ExperimentKey,
    IdempotencyKey,
    IfMatch,
    PageSize,
    PageToken,
    Window,
    json_response,
    once,
    rendered_response,
)
from service.web.api.rendered_changes import Changed
from service.web.api.rendered_experiments import encode_arm, encode_experiment
from service.web.problems import documented
from service.web.response_pieces import sent_in_pieces

router = APIRouter(prefix="/v1/experiments", tags=["experiments"], route_class=StrictRoute)
_UNREADABLE = (400, 413, 415, 422)
_BY_RECOMMENDATION = request_schemas.ConcludeIn()


def _changed_response(changed: Changed, headers: dict[str, str] | None = None) -> Response:
    return rendered_response(changed.rendered, {"ETag": changed.etag} | (headers or {}))


# How each field of a patch becomes one of the domain's.
_READ: dict[str, Any] = {
    "policy": policy_of,
    "reward": reward_of,
    "expiry": expiry_of,
    "conclude_when": rule_of,
    "tags": tuple,
}


@router.post("", status_code=201, response_model=answer_schemas.ExperimentOut, responses=documented(*_UNREADABLE, 409, 503))
async def create_experiment(
    request: Request, context: ContextOf, caller: CallerOf, key: IdempotencyKey, body: request_schemas.ExperimentIn
) -> Response:
    """Create an experiment with its arms."""
    experiment, arms = new_experiment(body)
    answered = once(request, "experiments", key, creates=True, render=encode_experiment)
    size = len(await request.body())
    made = await rendered_changes.create_experiment(context, caller, experiment, arms, answered, body_bytes=size)
    return _changed_response(made, {"Location": f"/v1/experiments/{body.key}"})


@router.get("", response_model=answer_schemas.ExperimentPage, responses=documented(422, 503))
async def list_experiments(
    context: ContextOf,
    caller: CallerOf,
    before: PageToken,
    window: Window,
    *,
    page_size: PageSize = 20,
    status: ExperimentStatus | None = None,
    q: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Key or name contain this, whatever its case.")] = None,
    tag: Annotated[str | None, Query(pattern=f"^{KEY_PATTERN}$", description="One of its tags.")] = None,
    owner: Annotated[str | None, Query(max_length=LONGEST_OWNER)] = None,
    sort: ExperimentOrder = "-created_at",
) -> Response:
    """All experiments, newest first, or those that are looked for, without the values of their arms.

    `since` and `until` are of their creation. A page ends early where its experiments would have more than 10,000 arms together.
    It looks at a bounded number of experiments: with a filter it may hold fewer than asked for, or none, while
    `next_page_token` says that there is more to look at.
    """
    wanted_ones = ExperimentFilter(q, status, tag, owner, sort, window.since, window.until, caller.experiments)
    wanted = experiment_descriptions.PageOfList(wanted_ones, before, page_size)
    found = await experiment_descriptions.list_small_page(context, wanted)
    if found is None:
        return sent_in_pieces(await context.lanes.present.run(rendered_experiments.render_experiments, wanted))
    return sent_in_pieces(rendered_experiments.encode_experiments(found))


@router.get("/{key}", response_model=answer_schemas.ExperimentOut, responses=documented(404, 503))
async def get_experiment(context: ContextOf, key: ExperimentKey) -> Response:
    """One experiment. Its ETag is of the settings and the arms; traffic does not move it."""
    small = await experiment_descriptions.describe_if_small(context, key)
    if small is None:
        etag, content = await context.lanes.present.run(rendered_experiments.render_experiment, key)
        return sent_in_pieces(content, headers={"ETag": etag})
    written = encode_experiment(small)
    return sent_in_pieces(written, headers={"ETag": experiment_etag(written)})


@router.patch("/{key}", response_model=answer_schemas.ExperimentOut, responses=documented(*_UNREADABLE, 404, 409, 412, 503))
async def patch_experiment(
    context: ContextOf, access: AccessOf, body: request_schemas.ExperimentPatch, if_match: IfMatch = None
) -> Response:
    """Change settings. `sticky`, `policy` and `reward` only in a draft."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    read = {name: _READ[name](value) if name in _READ else value for name, value in fields.items()}
    if "ofrep" in read:
        read["ofrep_bulk"] = read.pop("ofrep").bulk
    return _changed_response(await rendered_changes.patch_experiment(context, access, read, if_match))


async def _move(request: Request, context: ContextOf, access: Access, move: LifecycleMove, idempotency: str | None) -> Response:
    answered = once(request, move.move, idempotency, creates=False, render=encode_experiment)
    return _changed_response(await rendered_changes.move_experiment(context, access, move, answered))


@router.post("/{key}/start", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def start_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf) -> Response:
    """Draft to running."""
    return await _move(request, context, access, LifecycleMove("start"), idempotency)


@router.post("/{key}/pause", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def pause_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf) -> Response:
    """Running to paused: no asks, rewards still count."""
    return await _move(request, context, access, LifecycleMove("pause"), idempotency)


@router.post("/{key}/resume", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def resume_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf) -> Response:
    """Paused to running."""
    return await _move(request, context, access, LifecycleMove("resume"), idempotency)


@router.post("/{key}/conclude", response_model=answer_schemas.ExperimentOut, responses=documented(*_UNREADABLE, 404, 409, 503))
async def conclude_experiment(
    request: Request,
    context: ContextOf,
    idempotency: IdempotencyKey,
    access: AccessOf,
    body: Annotated[request_schemas.ConcludeIn, Body()] = _BY_RECOMMENDATION,
) -> Response:
    """Serve one arm from now on: the one named, else the recommendation."""
    return await _move(request, context, access, LifecycleMove("conclude", body.arm), idempotency)


@router.post("/{key}/reopen", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def reopen_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf) -> Response:
    """Concluded to paused: no arm is served any more, and `conclude_when` is null, so that it does not conclude at once again."""
    return await _move(request, context, access, LifecycleMove("reopen"), idempotency)


@router.post("/{key}/archive", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def archive_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf) -> Response:
    """Concluded to archived: everything is frozen."""
    return await _move(request, context, access, LifecycleMove("archive"), idempotency)


@router.post(
    "/{key}/duplicate",
    status_code=201,
    response_model=answer_schemas.ExperimentOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
)
async def duplicate_experiment(
    request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf, body: request_schemas.DuplicateIn
) -> Response:
    """A draft with the same settings and arms, with a seed of its own and no data."""
    answered = once(request, "duplicate", idempotency, creates=True, render=encode_experiment)
    made = await rendered_changes.duplicate_experiment(context, access, body.key, answered)
    return _changed_response(made, {"Location": f"/v1/experiments/{body.key}"})


@router.delete("/{key}", status_code=204, responses=documented(404, 409, 412, 422, 503))
async def delete_experiment(
    context: ContextOf,
    access: AccessOf,
    confirm: Annotated[str, Query(max_length=LONGEST_KEY, description="The experiment's key, once more.")],
    if_match: IfMatch = None,
) -> Response:
    """Delete a draft, or an archived experiment, with all that ever happened to it. This cannot be undone.

    Sent again it is 404: the experiment is gone, and another one may have its key.
    """
    await rendered_changes.delete_experiment(context, access, confirm, if_match)
    return Response(status_code=204)


@router.post(
    "/{key}/arms",
    status_code=201,
    response_model=answer_schemas.ArmOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
)
async def add_arm(
    request: Request, context: ContextOf, idempotency: IdempotencyKey, access: AccessOf, body: request_schemas.ArmIn
) -> Response:
    """Add an arm to a live experiment."""
    answered = once(request, "arms", idempotency, creates=True, render=encode_arm)
    return _changed_response(await rendered_changes.add_arm(context, access, arm_of(body, 0), answered))


@router.get("/{key}/arms/{arm}", response_model=answer_schemas.ArmOut, responses=documented(404, 503))
async def get_arm(context: ContextOf, key: ExperimentKey, arm: ArmKey) -> Response:
    """One arm."""
    found = await experiment_descriptions.describe_arm(context, key, arm)
    return json_response(views.arm_view(found), headers={"ETag": arm_etag(found)})


@router.patch("/{key}/arms/{arm}", response_model=answer_schemas.ArmOut, responses=documented(*_UNREADABLE, 404, 409, 412, 503))
async def patch_arm(
    context: ContextOf, access: AccessOf, arm: ArmKey, body: request_schemas.ArmPatch, if_match: IfMatch = None
) -> Response:
    """Change an arm's name, value, floor or status. `If-Match` takes the arm's ETag, or its experiment's."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    return _changed_response(await rendered_changes.patch_arm(context, access, arm, fields, if_match))
