"""What the answer says it assumes."""

from __future__ import annotations

from service.domain import Expiry
from service.inference import assumptions as module
from service.inference.assumptions import assumptions
from tests.inference.arms import BINARY, REAL


def test_each_treatment_of_silence_states_its_assumption() -> None:
    """Waiting for ever, dropping, and a numeric reward."""
    for expiry, expected in [
        (None, module.WAITS_FOR_EVER),
        (Expiry(60.0, None), module.SILENCE_DROPPED),
        (Expiry(60.0, 0.0), module.MATURED_ONLY),
    ]:
        assert assumptions(BINARY, expiry=expiry, observed=False, floors=False, drift=False) == [expected]


def test_imports_real_rewards_floors_and_drift_add_theirs() -> None:
    """Each of them once, in a fixed order."""
    stated = assumptions(REAL, expiry=None, observed=True, floors=True, drift=True)
    assert stated == [module.WAITS_FOR_EVER, module.HAND_PICKED, module.GAUSSIAN, module.FLOOR_ACTIVE, module.STABLE_MEANS]
