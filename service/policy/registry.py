"""Policies by the name that the API gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.policy.almost_tracking import AlmostTracking
from service.policy.floor_keeper import FloorKeeper
from service.policy.simple_tracking import SimpleTracking
from service.policy.uniform import Uniform
from service.policy.weights import WeightRule

if TYPE_CHECKING:
    from service.domain import PolicySpec
    from service.policy.base import Policy


def make_policy(spec: PolicySpec, *, has_floors: bool = False) -> Policy:
    """The policy that an experiment's settings ask for, which keeps the floors if any arm has one."""
    policy = _named_policy(spec)
    return FloorKeeper(policy) if has_floors and spec.keeps_floors else policy


def _named_policy(spec: PolicySpec) -> Policy:
    if spec.kind == "uniform":
        return Uniform()
    rule = WeightRule(spec.sharpness, spec.guard, spec.ties)
    if spec.kind == "simple_tracking":
        return SimpleTracking(rule)
    return AlmostTracking(spec.seed, spec.batch_size, spec.sufficiency, spec.sufficiency_by, rule)
