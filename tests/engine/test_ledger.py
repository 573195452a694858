"""A ledger by itself: what happened to it is what it hands over, whatever is still uncounted when something else happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.domain import (
    Arm,
    ArmRecord,
    ArmStatistics,
    Experiment,
    Expiry,
    PolicyKind,
    PolicySpec,
    Progress,
    RewardSpec,
)
from service.engine.ledger import Ledger

_ARMS = 3


def _ledger(policy: PolicyKind, expiry: Expiry | None = None) -> Ledger:
    experiment = Experiment(
        1, "e", "e", "", PolicySpec(policy, seed=7), RewardSpec(), expiry, False, 0.95, None, "running", None, 0
    )
    arms = [ArmRecord(Arm(position, f"arm-{position}", "", None), ArmStatistics()) for position in range(_ARMS)]
    return Ledger(Progress(experiment, version=1, as_of=0, draws=0, epoch=1), arms)


@pytest.mark.parametrize("policy", ["simple_tracking", "almost_tracking", "uniform"])
@pytest.mark.parametrize("change", ["settings", "arm", "new arm", "floor"])
def test_rewards_that_are_not_counted_yet_survive_a_change_of_settings(policy: PolicyKind, change: str) -> None:
    """First rewards are counted when somebody looks; a plan that is put away meanwhile must not lose them."""
    ledger = _ledger(policy)
    for _ in range(2 * _ARMS):
        ledger.draw(None, None, 0)
    for drawn in list(ledger.recent_draws.values()):
        ledger.step(drawn, "reward", 1.0, 0)
    if change == "settings":
        ledger.change_settings("patch", replace(ledger.experiment, name="other"), {}, 0)
    elif change == "arm":
        ledger.change_arm(replace(ledger.arms[2], status="disabled"), {}, 0)
    elif change == "floor":
        ledger.change_arm(replace(ledger.arms[2], min_share=0.2), {}, 0)
    else:
        ledger.add_arm(Arm(_ARMS, "late", "", None, added=1), {}, 0)
    assert [one.observed.count for one in ledger.statistics][:_ARMS] == [2, 2, 2]
    assert [one.pending for one in ledger.statistics][:_ARMS] == [0, 0, 0]


def test_draws_under_a_numeric_expiry_hand_over_what_they_move_and_no_more() -> None:
    """Their arms' counts of draws and of imputed rewards; the other columns of the rows stay."""
    ledger = _ledger("simple_tracking", Expiry(60.0, 0.0))
    ledger.draw(None, None, 0)
    ledger.draw(None, None, 0)
    changes = ledger.take_changes()
    assert changes is not None
    assert [record.arm.position for record in changes.imputed_arms] == [0, 1]
    assert (changes.arms, changes.drawn_arms) == ([], [])
    assert changes.is_draws()


def test_an_arm_that_was_drawn_and_rewarded_is_handed_over_once() -> None:
    """No stage of a group writes a row twice."""
    ledger = _ledger("simple_tracking", Expiry(60.0, 0.0))
    drawn = ledger.draw(None, None, 0)
    ledger.draw(None, None, 0)
    ledger.step(drawn, "reward", 1.0, 0)
    changes = ledger.take_changes()
    assert changes is not None
    assert [record.arm.position for record in changes.arms] == [0]
    assert [record.arm.position for record in changes.imputed_arms] == [1]
    assert [assignment.draw for assignment in changes.restated] == [drawn.draw]


def test_a_step_that_is_not_allowed_leaves_the_ledger_as_it_was() -> None:
    """A defect of a caller's is no event."""
    ledger = _ledger("simple_tracking")
    drawn = ledger.draw(None, None, 5)
    before = ledger.progress
    with pytest.raises(Exception, match="cannot lead from pending"):
        ledger.step(drawn, "correction", 1.0, 9)
    assert ledger.progress == before
