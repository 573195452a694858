"""What can be planned, and how the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest

from service.domain import PolicySpec, RewardSpec
from service.errors import InvalidValue
from service.simulation.prospect import Prospect, lifted_means

BINARY, LESS = RewardSpec("binary"), RewardSpec("bounded", "minimize", 0.0, 60.0)


def prospect(**changes: Any) -> Prospect:  # noqa: ANN401 - any field
    """Three arms, one of them better."""
    fields: dict[str, Any] = {"reward": BINARY, "policy": PolicySpec(), "means": (0.1, 0.1, 0.12), "floors": (0.0, 0.0, 0.0)}
    return Prospect(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"means": (0.1,), "floors": (0.0,)}, "/arms"),
        ({"means": (0.1,) * 100 + (0.2,), "floors": (0.0,) * 101}, "/arms"),
        ({"means": (0.5, 0.9, 1.1)}, "/baseline"),
        ({"means": (0.5, 0.9, float("nan"))}, "/baseline"),
        ({"reward": RewardSpec("real")}, "/deviation"),
        ({"reward": RewardSpec("real"), "deviation": float("inf")}, "/deviation"),
        ({"reward": LESS, "means": (1.0, 1.0, 0.5), "deviation": 30.0}, "/deviation"),
        ({"floors": (0.0, 0.0)}, "/min_share"),
        ({"floors": (0.5, 0.5, 0.5)}, "/min_share"),
        ({"confidence": 1.0}, "/confidence"),
        ({"worthwhile": 0.0}, "/worthwhile"),
        ({"worthwhile": 1.0}, "/worthwhile"),
        ({"delay": -1}, "/delay"),
        ({"window": 10**9}, "/expiry"),
        ({"window": 10, "silence": 0.5}, "/expiry/reward"),
        ({"loss": 1.0}, "/loss"),
        ({"loss": 0.1, "window": 10, "silence": 0.0}, "/loss"),
        ({"means": (0.1, 0.1, 0.1)}, "/means"),
    ],
)
def test_what_cannot_be_played_is_refused_where_it_is_wrong(changes: dict[str, Any], pointer: str) -> None:
    """Each with the field that it is about."""
    with pytest.raises(InvalidValue) as refused:
        prospect(**changes)
    assert refused.value.pointer == pointer


def test_a_lift_makes_one_arm_better_than_the_baseline() -> None:
    """The last one, or the one that is named; where less is better it is below."""
    assert lifted_means(BINARY, 3, 0.1, 0.5) == (0.1, 0.1, 0.6)
    assert lifted_means(LESS, 3, 14.0, 2.0, best=1) == (14.0, 12.0, 14.0)


def test_equals_are_like_the_worst() -> None:
    """All of them; and then nobody is best, so something must be worthwhile."""
    equals = prospect(worthwhile=0.02).among_equals()
    assert equals.means == (0.1, 0.1, 0.1)
    assert not equals.has_best
    with pytest.raises(InvalidValue, match="worthwhile"):
        prospect().among_equals()
