"""What is counted of an arm does not depend on the way it is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.domain import ArmStatistics, AssignmentState

_rewards = st.sampled_from([0.0, 1.0, 0.1, -2.5, 1e100])
_moves = st.lists(st.tuples(_rewards, st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(_moves)
def test_a_reward_moves_as_taking_away_and_adding_would(moves: list[tuple[float, bool, bool]]) -> None:
    """The short way for the most frequent move gives what the general one gives, whatever was counted before."""
    pending = AssignmentState("pending", None, closed=True)
    short = general = ArmStatistics()
    for reward, in_epoch, void in moves:
        rewarded = AssignmentState("rewarded", reward, closed=True)
        short = short.counting(pending, None, in_epoch=in_epoch)
        general = general.counting(pending, None, in_epoch=in_epoch)
        short = short.moving(pending, rewarded, None, in_epoch=in_epoch)
        general = general.counting(pending, None, in_epoch=in_epoch, times=-1).counting(rewarded, None, in_epoch=in_epoch)
        if void:
            voided = AssignmentState("voided", None, closed=True)
            short = short.moving(rewarded, voided, None, in_epoch=in_epoch)
            general = general.counting(rewarded, None, in_epoch=in_epoch, times=-1)
        assert short == general


@given(st.lists(_rewards, min_size=1, max_size=20))
def test_an_open_window_keeps_matured_rewards_apart(rewards: list[float]) -> None:
    """Under a numeric expiry a reward is observed at once and matures when its window closes."""
    counted = ArmStatistics()
    open_ = AssignmentState("pending", None, closed=False)
    for told, reward in enumerate(rewards, 1):
        counted = counted.counting(open_, 0.0, in_epoch=True)
        counted = counted.moving(open_, AssignmentState("rewarded", reward, closed=False), 0.0, in_epoch=True)
        assert (counted.observed.count, counted.matured.count, counted.imputed.count) == (told, 0, 0)
