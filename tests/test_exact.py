"""Exact sums: nothing is rounded until a mean is asked for."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from service.exact import NO_REWARDS, ExactSum, Moments

# Of quarters the squares may add up to a whole number when the rewards do not, and the other way round.
rewards = st.one_of(
    st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(-1e100, 1e100), st.floats(-1, 1)
)


def counted(values: list[float]) -> Moments:
    """The moments of some rewards, told one after the other."""
    moments = NO_REWARDS
    for value in values:
        moments = moments.with_reward(value)
    return moments


@given(st.lists(rewards, min_size=1, max_size=20))
def test_mean_and_variance_are_rounded_once(values: list[float]) -> None:
    """They are the doubles nearest to the exact mean and variance."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    assert counted(values).mean() == float(mean)
    if len(values) > 1:
        assert counted(values).variance() == float(sum((value - mean) ** 2 for value in exact) / (len(exact) - 1))


@given(st.lists(rewards, max_size=20), st.randoms())
def test_order_does_not_matter_and_taking_away_reverses(values: list[float], random: object) -> None:
    """Rewards told in any order sum alike; taken away again they leave nothing."""
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    moments = counted(values)
    assert counted(shuffled) == moments
    for value in shuffled:
        moments = moments.with_reward(value, times=-1)
    assert moments == NO_REWARDS


@given(rewards, rewards)
def test_sums_survive_their_text(a: float, b: float) -> None:
    """What is stored is what was summed, to the last bit."""
    total = ExactSum.of(a).plus(ExactSum.of(b)).plus(ExactSum.of(a).squared(), times=3)
    assert ExactSum.parse(str(total)) == total
    assert Fraction(total.numerator, 2**total.shift) == Fraction(a) + Fraction(b) + 3 * Fraction(a) ** 2


def test_whole_squares_of_broken_rewards() -> None:
    """Four quarters and three halves: their squares add up to 1, they themselves to 2.5."""
    moments = counted([0.25] * 4 + [0.5] * 3)
    assert moments.variance() == float((1 - Fraction(5, 2) ** 2 / 7) / 6)
    assert moments.with_reward(1.0).mean() == 3.5 / 8


def test_no_rewards_have_no_mean() -> None:
    """Without a reward there is no mean, below two no variance."""
    assert NO_REWARDS.mean() is None
    assert counted([1.0]).variance() is None
