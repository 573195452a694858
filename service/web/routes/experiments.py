"""Experiments and their arms."""

from __future__ import annotations

from secrets import randbelow
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from service.application import experiments
from service.application.experiments import ChangeArm, Patch, Step
from service.domain import Arm, ArmRecord, ConcludeWhen, Experiment, Expiry, PolicySpec, RewardSpec
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

router = APIRouter(prefix="/v1/experiments", tags=["experiments"], route_class=StrictRoute)
_UNREADABLE = (400, 413, 415, 422)
_BY_RECOMMENDATION = schemas.ConcludeIn()


def _policy(given: schemas.PolicyIn) -> PolicySpec:
    fields = given.model_dump()
    seed = fields.pop("seed")
    return PolicySpec(seed=randbelow(schemas.LARGEST_SEED + 1) if seed is None else seed, **fields)


def _reward(given: schemas.RewardIn) -> RewardSpec:
    return RewardSpec(given.kind, given.goal, given.min, given.max)


def _expiry(given: schemas.ExpiryIn | None) -> Expiry | None:
    return Expiry(given.after_seconds, given.reward) if given else None


def _conclude_when(given: schemas.ConcludeWhenIn | None) -> ConcludeWhen | None:
    return ConcludeWhen(given.separated, given.min_observations) if given else None


def _arm(given: schemas.ArmIn, position: int) -> Arm:
    name = given.key if given.name is None else given.name
    return Arm(position, given.key, name, given.value, given.min_share)


def _render_experiment(described: experiments.Described) -> bytes:
    return views.encode(views.experiment_view(described))


def _render_arm(record: ArmRecord) -> bytes:
    return views.encode(views.arm_view(record.arm))


# How each field of a patch becomes one of the domain's.
_READ: dict[str, Any] = {
    "policy": _policy,
    "reward": _reward,
    "expiry": _expiry,
    "conclude_when": _conclude_when,
}


@router.post("", status_code=201, response_model=schemas.ExperimentOut, responses=documented(*_UNREADABLE, 409, 503))
async def create_experiment(request: Request, context: ContextOf, key: IdempotencyKey, body: schemas.ExperimentIn) -> Response:
    """Create an experiment with its arms."""
    experiment = Experiment(
        id=0,
        key=body.key,
        name=body.key if body.name is None else body.name,
        description=body.description,
        policy=_policy(body.policy),
        reward=_reward(body.reward),
        expiry=_expiry(body.expiry),
        sticky=body.sticky,
        confidence=body.confidence,
        conclude_when=_conclude_when(body.conclude_when),
        status=body.status,
        concluded_arm=None,
        created_at=0,
    )
    arms = [_arm(arm, position) for position, arm in enumerate(body.arms)]
    answered = once(request, "experiments", key, 201, _render_experiment)
    rendered = await experiments.create(context, experiment, arms, answered)
    return rendered_response(rendered, {"Location": f"/v1/experiments/{body.key}"})


@router.get("", response_model=schemas.ExperimentPage, responses=documented(422, 503))
async def list_experiments(context: ContextOf, before: PageToken, page_size: PageSize = 20) -> Response:
    """All experiments, newest first."""
    found = await experiments.list_page(context, before=before, limit=page_size + 1)
    page = Paged.of(found, page_size, lambda described: described[0].experiment.id)
    shown = [views.experiment_view(described) for described in page.items]
    return json_response({"experiments": shown, "next_page_token": page.next_page_token})


@router.get("/{key}", response_model=schemas.ExperimentOut, responses=documented(404, 503))
async def get_experiment(context: ContextOf, key: str) -> Response:
    """One experiment."""
    return json_response(views.experiment_view(await experiments.describe(context, key)))


@router.patch("/{key}", response_model=schemas.ExperimentOut, responses=documented(*_UNREADABLE, 404, 409, 503))
async def patch_experiment(context: ContextOf, key: str, body: schemas.ExperimentPatch) -> Response:
    """Change settings. `sticky`, `policy` and `reward` only in a draft."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    read = {name: _READ[name](value) if name in _READ else value for name, value in fields.items()}
    return json_response(views.experiment_view(await experiments.change(context, key, Patch(read))))


async def _step(context: ContextOf, key: str, step: Step) -> Response:
    return json_response(views.experiment_view(await experiments.change(context, key, step)))


@router.post("/{key}/start", response_model=schemas.ExperimentOut, responses=documented(404, 409, 503))
async def start_experiment(context: ContextOf, key: str) -> Response:
    """Draft to running."""
    return await _step(context, key, Step("start"))


@router.post("/{key}/pause", response_model=schemas.ExperimentOut, responses=documented(404, 409, 503))
async def pause_experiment(context: ContextOf, key: str) -> Response:
    """Running to paused: no asks, rewards still count."""
    return await _step(context, key, Step("pause"))


@router.post("/{key}/resume", response_model=schemas.ExperimentOut, responses=documented(404, 409, 503))
async def resume_experiment(context: ContextOf, key: str) -> Response:
    """Paused to running."""
    return await _step(context, key, Step("resume"))


@router.post("/{key}/conclude", response_model=schemas.ExperimentOut, responses=documented(*_UNREADABLE, 404, 409, 503))
async def conclude_experiment(
    context: ContextOf, key: str, body: Annotated[schemas.ConcludeIn, Body()] = _BY_RECOMMENDATION
) -> Response:
    """Serve one arm from now on: the one named, else the recommendation."""
    return await _step(context, key, Step("conclude", body.arm))


@router.post("/{key}/archive", response_model=schemas.ExperimentOut, responses=documented(404, 409, 503))
async def archive_experiment(context: ContextOf, key: str) -> Response:
    """Concluded to archived: everything is frozen."""
    return await _step(context, key, Step("archive"))


@router.post(
    "/{key}/arms",
    status_code=201,
    response_model=schemas.ArmOut,
    responses=documented(*_UNREADABLE, 404, 409, 503),
)
async def add_arm(request: Request, context: ContextOf, idempotency: IdempotencyKey, key: str, body: schemas.ArmIn) -> Response:
    """Add an arm to a live experiment."""
    answered = once(request, "arms", idempotency, 201, _render_arm)
    return rendered_response(await experiments.add_arm(context, key, _arm(body, 0), answered))


@router.patch("/{key}/arms/{arm}", response_model=schemas.ArmOut, responses=documented(*_UNREADABLE, 404, 409, 503))
async def patch_arm(context: ContextOf, key: str, arm: str, body: schemas.ArmPatch) -> Response:
    """Change an arm's name, value, floor or status."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    changed = await experiments.change_arm(context, key, ChangeArm(arm, fields))
    return json_response(views.arm_view(changed.arm))
