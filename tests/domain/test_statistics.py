"""What is counted of an arm does not depend on the way it is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.domain import ArmStatistics, AssignmentState

_rewards = st.sampled_from([0.0, 1.0, 0.1, -2.5, 1e100])
_some = st.lists(st.tuples(st.lists(_rewards, min_size=1, max_size=12), st.booleans()), min_size=1, max_size=6)


@given(_some)
def test_many_rewards_count_as_one_after_the_other(some: list[tuple[list[float], bool]]) -> None:
    """Rewards told at once give what moving each of their draws by itself gives, whatever was counted before."""
    pending, voided = AssignmentState("pending", None, closed=True), AssignmentState("voided", None, closed=True)
    at_once = one_by_one = ArmStatistics()
    for rewards, void in some:
        for _ in rewards:
            at_once = at_once.with_state(pending, None, in_epoch=True)
            one_by_one = one_by_one.with_state(pending, None, in_epoch=True)
        at_once = at_once.with_rewards(rewards)
        for reward in rewards:
            one_by_one = one_by_one.with_step(pending, AssignmentState("rewarded", reward, closed=True), None, in_epoch=True)
        assert at_once == one_by_one
        if void:
            rewarded = AssignmentState("rewarded", rewards[0], closed=True)
            at_once = at_once.with_step(rewarded, voided, None, in_epoch=True)
            one_by_one = one_by_one.with_step(rewarded, voided, None, in_epoch=True)


@given(st.lists(_rewards, min_size=1, max_size=20))
def test_an_open_window_keeps_matured_rewards_apart(rewards: list[float]) -> None:
    """Under a numeric expiry a reward is observed at once and matures when its window closes."""
    counted = ArmStatistics()
    open_ = AssignmentState("pending", None, closed=False)
    for told, reward in enumerate(rewards, 1):
        counted = counted.with_state(open_, 0.0, in_epoch=True)
        counted = counted.with_step(open_, AssignmentState("rewarded", reward, closed=False), 0.0, in_epoch=True)
        assert (counted.observed.count, counted.matured.count, counted.imputed.count) == (told, 0, 0)
