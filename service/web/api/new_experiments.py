"""New experiments, and patches of them, from the schemas of the API to the words of the domain."""

from __future__ import annotations

from dataclasses import replace
from secrets import randbelow

from service.application.commands import experiments
from service.domain import Arm, ConcludeWhen, Experiment, Expiry, PolicySpec, RewardSpec
from service.domain.limits import LARGEST_SEED
from service.policy.automatic import AutomaticPolicy
from service.web.api import request_schemas


def policy_of(given: request_schemas.PolicyIn) -> PolicySpec | AutomaticPolicy:
    """A policy, or one that is still to be chosen; its seed is drawn if none is given."""
    fields = given.model_dump()
    seed = fields.pop("seed")
    if seed is None:
        seed = randbelow(LARGEST_SEED + 1)
    return AutomaticPolicy(seed) if given.kind == "auto" else PolicySpec(seed=seed, keeps_floors=True, **fields)


def reward_of(given: request_schemas.RewardIn) -> RewardSpec:
    """What a reward may be."""
    return RewardSpec(given.kind, given.goal, given.min, given.max)


def expiry_of(given: request_schemas.ExpiryIn | None) -> Expiry | None:
    """What silence means."""
    return Expiry(given.after_seconds, given.reward) if given else None


def rule_of(given: request_schemas.ConcludeWhenIn | None) -> ConcludeWhen | None:
    """When it concludes by itself; separated is meant if nothing is said."""
    if given is None:
        return None
    decided, beats_control = given.decided is not None, given.beats_control is not None
    return ConcludeWhen(not decided and not beats_control, given.min_observations, decided, beats_control)


def arm_of(given: request_schemas.ArmIn, position: int) -> Arm:
    """An arm, which is called by its key if it has no name."""
    name = given.key if given.name is None else given.name
    return Arm(position, given.key, name, given.value, given.min_share)


def new_experiment(body: request_schemas.ExperimentIn) -> tuple[Experiment, list[Arm]]:
    """The experiment that a body asks for, with its arms."""
    reward = reward_of(body.reward)
    experiment = Experiment(
        id=0,
        key=body.key,
        name=body.key if body.name is None else body.name,
        description=body.description,
        policy=experiments.resolved_policy(policy_of(body.policy), reward, len(body.arms)),
        reward=reward,
        expiry=expiry_of(body.expiry),
        sticky=body.sticky,
        confidence=body.confidence,
        conclude_when=rule_of(body.conclude_when),
        worthwhile=body.worthwhile,
        ofrep_bulk=body.ofrep.bulk,
        status=body.status,
        concluded_arm=None,
        created_at=0,
        tags=tuple(body.tags),
        owner=body.owner,
    )
    arms = [arm_of(arm, position) for position, arm in enumerate(body.arms)]
    return replace(experiment, control=experiments.control_among(arms, body.control)), arms
