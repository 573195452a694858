"""Experiments and their arms."""

from __future__ import annotations

from dataclasses import replace
from secrets import randbelow
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response

from service.application.commands import experiments
from service.application.commands.lifecycle import LifecycleMove
from service.application.reads import experiment_descriptions
from service.domain import Arm, ConcludeWhen, Experiment, ExperimentStatus, Expiry, PolicySpec, RewardSpec
from service.domain.limits import KEY_PATTERN, LARGEST_SEED, LONGEST_KEY, LONGEST_NAME, LONGEST_OWNER
from service.policy.automatic import AutomaticPolicy
from service.storage.queries.experiment_list import ExperimentFilter, ExperimentOrder
from service.web.api import answer_schemas, rendered_changes, rendered_experiments, request_schemas, views
from service.web.api.body import StrictRoute
from service.web.api.content_etags import arm_etag, experiment_etag
from service.web.api.parameters import (
    ArmKey,
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


def _policy(given: request_schemas.PolicyIn) -> PolicySpec | AutomaticPolicy:
    fields = given.model_dump()
    seed = fields.pop("seed")
    if seed is None:
        seed = randbelow(LARGEST_SEED + 1)
    return AutomaticPolicy(seed) if given.kind == "auto" else PolicySpec(seed=seed, keeps_floors=True, **fields)


def _reward(given: request_schemas.RewardIn) -> RewardSpec:
    return RewardSpec(given.kind, given.goal, given.min, given.max)


def _expiry(given: request_schemas.ExpiryIn | None) -> Expiry | None:
    return Expiry(given.after_seconds, given.reward) if given else None


def _conclude_when(given: request_schemas.ConcludeWhenIn | None) -> ConcludeWhen | None:
    if given is None:
        return None
    decided, beats_control = given.decided is not None, given.beats_control is not None
    return ConcludeWhen(not decided and not beats_control, given.min_observations, decided, beats_control)


def _arm(given: request_schemas.ArmIn, position: int) -> Arm:
    name = given.key if given.name is None else given.name
    return Arm(position, given.key, name, given.value, given.min_share)


def _changed_response(changed: Changed, headers: dict[str, str] | None = None) -> Response:
    return rendered_response(changed.rendered, {"ETag": changed.etag} | (headers or {}))


# How each field of a patch becomes one of the domain's.
_READ: dict[str, Any] = {
    "policy": _policy,
    "reward": _reward,
    "expiry": _expiry,
    "conclude_when": _conclude_when,
    "tags": tuple,
}


@router.post("", status_code=201, response_model=answer_schemas.ExperimentOut, responses=documented(*_UNREADABLE, 409, 503))
async def create_experiment(
    request: Request, context: ContextOf, key: IdempotencyKey, body: request_schemas.ExperimentIn
) -> Response:
    """Create an experiment with its arms."""
    reward = _reward(body.reward)
    experiment = Experiment(
        id=0,
        key=body.key,
        name=body.key if body.name is None else body.name,
        description=body.description,
        policy=experiments.resolved_policy(_policy(body.policy), reward, len(body.arms)),
        reward=reward,
        expiry=_expiry(body.expiry),
        sticky=body.sticky,
        confidence=body.confidence,
        conclude_when=_conclude_when(body.conclude_when),
        worthwhile=body.worthwhile,
        status=body.status,
        concluded_arm=None,
        created_at=0,
        tags=tuple(body.tags),
        owner=body.owner,
    )
    arms = [_arm(arm, position) for position, arm in enumerate(body.arms)]
    experiment = replace(experiment, control=experiments.control_among(arms, body.control))
    answered = once(request, "experiments", key, creates=True, render=encode_experiment)
    made = await rendered_changes.create_experiment(context, experiment, arms, answered, body_bytes=len(await request.body()))
    return _changed_response(made, {"Location": f"/v1/experiments/{body.key}"})


@router.get("", response_model=answer_schemas.ExperimentPage, responses=documented(422, 503))
async def list_experiments(
    context: ContextOf,
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
    wanted_ones = ExperimentFilter(q, status, tag, owner, sort, window.since, window.until)
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
    context: ContextOf, key: ExperimentKey, body: request_schemas.ExperimentPatch, if_match: IfMatch = None
) -> Response:
    """Change settings. `sticky`, `policy` and `reward` only in a draft."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    read = {name: _READ[name](value) if name in _READ else value for name, value in fields.items()}
    return _changed_response(await rendered_changes.patch_experiment(context, key, read, if_match))


async def _move(request: Request, context: ContextOf, key: str, move: LifecycleMove, idempotency: str | None) -> Response:
    answered = once(request, move.move, idempotency, creates=False, render=encode_experiment)
    return _changed_response(await rendered_changes.move_experiment(context, key, move, answered))


@router.post("/{key}/start", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def start_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, key: ExperimentKey) -> Response:
    """Draft to running."""
    return await _move(request, context, key, LifecycleMove("start"), idempotency)


@router.post("/{key}/pause", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def pause_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, key: ExperimentKey) -> Response:
    """Running to paused: no asks, rewards still count."""
    return await _move(request, context, key, LifecycleMove("pause"), idempotency)


@router.post("/{key}/resume", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def resume_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, key: ExperimentKey) -> Response:
    """Paused to running."""
    return await _move(request, context, key, LifecycleMove("resume"), idempotency)


@router.post("/{key}/conclude", response_model=answer_schemas.ExperimentOut, responses=documented(*_UNREADABLE, 404, 409, 503))
async def conclude_experiment(
    request: Request,
    context: ContextOf,
    idempotency: IdempotencyKey,
    key: ExperimentKey,
    body: Annotated[request_schemas.ConcludeIn, Body()] = _BY_RECOMMENDATION,
) -> Response:
    """Serve one arm from now on: the one named, else the recommendation."""
    return await _move(request, context, key, LifecycleMove("conclude", body.arm), idempotency)


@router.post("/{key}/reopen", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def reopen_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, key: ExperimentKey) -> Response:
    """Concluded to paused: no arm is served any more, and `conclude_when` is null, so that it does not conclude at once again."""
    return await _move(request, context, key, LifecycleMove("reopen"), idempotency)


@router.post("/{key}/archive", response_model=answer_schemas.ExperimentOut, responses=documented(404, 409, 422, 503))
async def archive_experiment(request: Request, context: ContextOf, idempotency: IdempotencyKey, key: ExperimentKey) -> Response:
    """Concluded to archived: everything is frozen."""
    return await _move(request, context, key, LifecycleMove("archive"), idempotency)


@router.post(
    "/{key}/duplicate",
    status_code=201,
    response_model=answer_schemas.ExperimentOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
)
async def duplicate_experiment(
    request: Request, context: ContextOf, idempotency: IdempotencyKey, key: ExperimentKey, body: request_schemas.DuplicateIn
) -> Response:
    """A draft with the same settings and arms, with a seed of its own and no data."""
    answered = once(request, "duplicate", idempotency, creates=True, render=encode_experiment)
    made = await rendered_changes.duplicate_experiment(context, key, body.key, answered)
    return _changed_response(made, {"Location": f"/v1/experiments/{body.key}"})


@router.delete("/{key}", status_code=204, responses=documented(404, 409, 412, 422, 503))
async def delete_experiment(
    context: ContextOf,
    key: ExperimentKey,
    confirm: Annotated[str, Query(max_length=LONGEST_KEY, description="The experiment's key, once more.")],
    if_match: IfMatch = None,
) -> Response:
    """Delete a draft, or an archived experiment, with all that ever happened to it. This cannot be undone.

    Sent again it is 404: the experiment is gone, and another one may have its key.
    """
    await rendered_changes.delete_experiment(context, key, confirm, if_match)
    return Response(status_code=204)


@router.post(
    "/{key}/arms",
    status_code=201,
    response_model=answer_schemas.ArmOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
)
async def add_arm(
    request: Request, context: ContextOf, idempotency: IdempotencyKey, key: ExperimentKey, body: request_schemas.ArmIn
) -> Response:
    """Add an arm to a live experiment."""
    answered = once(request, "arms", idempotency, creates=True, render=encode_arm)
    return _changed_response(await rendered_changes.add_arm(context, key, _arm(body, 0), answered))


@router.get("/{key}/arms/{arm}", response_model=answer_schemas.ArmOut, responses=documented(404, 503))
async def get_arm(context: ContextOf, key: ExperimentKey, arm: ArmKey) -> Response:
    """One arm."""
    found = await experiment_descriptions.describe_arm(context, key, arm)
    return json_response(views.arm_view(found), headers={"ETag": arm_etag(found)})


@router.patch("/{key}/arms/{arm}", response_model=answer_schemas.ArmOut, responses=documented(*_UNREADABLE, 404, 409, 412, 503))
async def patch_arm(
    context: ContextOf, key: ExperimentKey, arm: ArmKey, body: request_schemas.ArmPatch, if_match: IfMatch = None
) -> Response:
    """Change an arm's name, value, floor or status. `If-Match` takes the arm's ETag, or its experiment's."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    return _changed_response(await rendered_changes.patch_arm(context, key, arm, fields, if_match))
