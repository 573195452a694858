"""Count, mean and variance are exact: in any order, after any correction, equal to a recomputation from the rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.application.commands.ask import AskMany
from service.application.commands.tell import ObservationItem, Observe, RewardItem, Tell, TellMany
from service.domain import RewardSpec
from service.exact import NO_REWARDS, Moments
from testing.workers import Workers

_REWARDS = st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=30)
_AWKWARD = [0.1, 0.2, 0.3, -0.6, 1e100, -1e100, 1e-300, 5e-324, 1 / 3, 7.0]


def exact(rewards: list[float]) -> tuple[int, float, float]:
    """Count, mean and variance in fractions, rounded once."""
    values = [Fraction(value) for value in rewards]
    mean = sum(values, Fraction(0)) / len(values)
    spread = sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - 1)
    return len(values), float(mean), float(spread)


@given(rewards=_REWARDS, order=st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order(rewards: list[float], order: object) -> None:
    """Any order gives the same integers, and they are the exact ones."""
    forward = moments(rewards)
    shuffled = list(rewards)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert moments(shuffled) == forward
    assert (forward.count, forward.mean(), forward.variance()) == exact(rewards)


@given(rewards=_REWARDS, taken=st.lists(st.floats(-1e100, 1e100), max_size=20))
def test_taking_away_reverses_adding(rewards: list[float], taken: list[float]) -> None:
    """Rewards that come and go leave no trace, not even in the last bit."""
    passing = moments(rewards)
    for reward in taken:
        passing = passing.with_reward(reward)
    for reward in reversed(taken):
        passing = passing.with_reward(reward, -1)
    assert passing == moments(rewards)


def moments(rewards: list[float]) -> Moments:
    """The sums of some rewards."""
    total = NO_REWARDS
    for reward in rewards:
        total = total.with_reward(reward)
    return total


def test_stored_statistics_are_those_of_the_rows_after_many_corrections(workers: Workers, key: str) -> None:
    """Five hundred draws told, corrected, voided and brought back at random: the sums are those of what is left."""
    rng = np.random.default_rng(5)
    workers.create(key, [("a", 0.0), ("b", 0.0)], reward=RewardSpec("real"))
    drawn = workers.submit(key, AskMany([None] * 500, by_count=True))
    ids = [answer.assignment.id for answer in drawn if answer.assignment]
    arms = [answer.arm.position for answer in drawn]
    rewards: dict[int, float] = {}

    def any_reward() -> float:
        return float(rng.choice(_AWKWARD)) if rng.random() < 0.3 else float(rng.normal() * 10.0 ** rng.integers(-20, 20))

    for index in range(500):
        rewards[index] = any_reward()
    first = [RewardItem(assignment=ids[index], reward=rewards[index]) for index in rng.permutation(500).tolist()]
    assert {result.status for result in workers.submit(key, TellMany(first), 1)} == {"recorded"}
    for turn in range(4):
        changes = []
        for index in rng.choice(500, 150).tolist():
            if rng.random() < 0.3:
                changes.append(Tell(ids[index], "void"))
                rewards.pop(index, None)
            else:
                rewards[index] = any_reward()
                changes.append(Tell(ids[index], "correct", rewards[index]))
        workers.submit_together(key, changes, turn % 2)
    extra = [any_reward() for _ in range(50)]
    workers.submit(key, Observe([ObservationItem("b", reward, None) for reward in extra]))
    for position, shown in enumerate(workers.look(key).standings):
        left = [reward for index, reward in rewards.items() if arms[index] == position] + (extra if position else [])
        assert (shown.observations, shown.mean, shown.variance) == exact(left)
    workers.replay(key)


def test_a_correction_back_and_forth_is_as_if_nothing_had_happened(workers: Workers, key: str) -> None:
    """A thousand corrections between a huge and a tiny reward leave the mean of the others to the bit."""
    workers.create(key, [("a", 0.0), ("b", 0.0)], reward=RewardSpec("real"))
    workers.submit(key, Observe([ObservationItem("a", 0.1, None), ObservationItem("a", 0.2, None)]))
    before = workers.look(key).standings[0]
    drawn = workers.submit(key, AskMany([None] * 20, by_count=True))
    own = next(answer.assignment for answer in drawn if answer.arm.key == "a")
    assert own is not None
    swings = [Tell(own.id, "correct", 1e100 if turn % 2 else 5e-324) for turn in range(1_000)]
    assert all(one != other for one, other in pairwise(swings))
    workers.submit_together(key, [*swings, Tell(own.id, "void")])
    after = workers.look(key).standings[0]
    assert (after.mean, after.variance, after.observations) == (before.mean, before.variance, before.observations)
