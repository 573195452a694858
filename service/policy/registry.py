"""Policies by the name that the API gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.policy.almost_tracking import AlmostTracking
from service.policy.simple_tracking import SimpleTracking
from service.policy.uniform import Uniform

if TYPE_CHECKING:
    from service.domain import PolicySpec
    from service.policy.base import Policy


def make_policy(spec: PolicySpec) -> Policy:
    """The policy that an experiment's settings ask for."""
    if spec.kind == "uniform":
        return Uniform()
    if spec.kind == "simple_tracking":
        return SimpleTracking(spec.sharpness)
    return AlmostTracking(spec.seed, spec.batch_size, spec.sufficiency, spec.sufficiency_by, spec.sharpness)
