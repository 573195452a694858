"""A ledger by itself: what happened to it is what it hands over, whatever is still uncounted when something else happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.domain import Arm, Expiry, PolicyKind
from testing.ledgers import ARMS, new_ledger


@pytest.mark.parametrize("policy", ["simple_tracking", "almost_tracking", "uniform"])
@pytest.mark.parametrize("change", ["settings", "arm", "new arm", "floor"])
def test_rewards_that_are_not_counted_yet_survive_a_change_of_settings(policy: PolicyKind, change: str) -> None:
    """First rewards are counted when somebody looks; a plan that is put away meanwhile must not lose them."""
    ledger = new_ledger(policy)
    for _ in range(2 * ARMS):
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
        ledger.add_arm(Arm(ARMS, "late", "", None, added=1), {}, 0)
    assert [one.observed.count for one in ledger.statistics][:ARMS] == [2, 2, 2]
    assert [one.pending for one in ledger.statistics][:ARMS] == [0, 0, 0]


def test_draws_under_a_numeric_expiry_hand_over_what_they_move_and_no_more() -> None:
    """Their arms' counts of draws and of imputed rewards; the other columns of the rows stay."""
    ledger = new_ledger("simple_tracking", Expiry(60.0, 0.0))
    ledger.draw(None, None, 0)
    ledger.draw(None, None, 0)
    changes = ledger.take_changes()
    assert changes is not None
    assert [record.arm.position for record in changes.imputed_arms] == [0, 1]
    assert (changes.arms, changes.drawn_arms) == ([], [])
    assert changes.is_draws()


def test_an_arm_that_was_drawn_and_rewarded_is_handed_over_once() -> None:
    """No stage of a group writes a row twice."""
    ledger = new_ledger("simple_tracking", Expiry(60.0, 0.0))
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
    ledger = new_ledger("simple_tracking")
    drawn = ledger.draw(None, None, 5)
    before = ledger.progress
    with pytest.raises(Exception, match="cannot lead from pending"):
        ledger.step(drawn, "correction", 1.0, 9)
    assert ledger.progress == before


@pytest.mark.parametrize("policy", ["simple_tracking", "almost_tracking", "uniform"])
@pytest.mark.parametrize(("before", "after"), [(0.0, 0.5), (0.8, 0.2)])
def test_a_new_floor_is_a_promise_from_then_on(policy: PolicyKind, before: float, after: float) -> None:
    """The arm neither floods the experiment until its whole past has caught up, nor waits until that has been worn off."""
    ledger = new_ledger(policy, floor=before)
    for _ in range(1_500):
        ledger.step(ledger.draw(None, None, 0), "reward", 1.0, 0)
    ledger.change_arm(replace(ledger.arms[2], min_share=after), {}, 0)
    assert ledger.epoch == 2
    since = 0
    for draw in range(1, 501):
        drawn = ledger.draw(None, None, 0)
        ledger.step(drawn, "reward", 1.0, 0)
        since += drawn.arm == 2
        assert after * draw - 2.0 <= since <= (after + (1.0 - after) / 2) * draw + 10.0


def test_another_name_or_the_floor_of_a_disabled_arm_starts_no_epoch() -> None:
    """Nothing about the traffic changes, so what was drawn goes on counting."""
    ledger = new_ledger("simple_tracking", floor=0.1)
    ledger.change_arm(replace(ledger.arms[2], name="other"), {}, 0)
    assert ledger.epoch == 1
    ledger.change_arm(replace(ledger.arms[2], status="disabled"), {}, 0)
    ledger.change_arm(replace(ledger.arms[2], min_share=0.3), {}, 0)
    assert ledger.epoch == 2


def test_an_experiment_from_before_floors_were_kept_goes_on_as_it_was() -> None:
    """Its draws after a change of a floor were made without a new epoch, and replay has to make them again."""
    ledger = new_ledger("simple_tracking")
    ledger.change_arm(replace(ledger.arms[2], min_share=0.3), {}, 0)
    assert ledger.epoch == 1
