"""Exact sums of floats.

A float is an integer times a power of two, so sums of floats (and of their squares) can be kept without any rounding as
`numerator / 2**shift`. Adding and taking away reverse exactly, the order does not matter, and the mean is rounded once.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class ExactSum(msgspec.Struct, frozen=True, gc=False):
    """The number `numerator / 2**shift` in lowest terms (shift >= 0, numerator odd unless shift is 0)."""

    numerator: int = 0
    shift: int = 0

    @staticmethod
    def of(value: float) -> ExactSum:
        """The float itself."""
        numerator, denominator = float(value).as_integer_ratio()
        return ExactSum(numerator, denominator.bit_length() - 1)

    @staticmethod
    def parse(text: str) -> ExactSum:
        """The inverse of `str`."""
        if "/" not in text:  # as with binary rewards
            return ExactSum(int(text))
        numerator, _, shift = text.partition("/2^")
        return ExactSum(int(numerator), int(shift))

    def __str__(self) -> str:
        """An integer, or an integer over a power of two: "385", "-3/2^4"."""
        return f"{self.numerator}/2^{self.shift}" if self.shift else str(self.numerator)

    def plus(self, other: ExactSum, times: int = 1) -> ExactSum:
        """This sum with `times` times the other added."""
        shift = max(self.shift, other.shift)
        numerator = (self.numerator << (shift - self.shift)) + times * (other.numerator << (shift - other.shift))
        if shift:
            spare = min(shift, (numerator & -numerator).bit_length() - 1) if numerator else shift
            numerator >>= spare
            shift -= spare
        return ExactSum(numerator, shift)

    def squared(self) -> ExactSum:
        """The square, exactly."""
        return ExactSum(self.numerator * self.numerator, 2 * self.shift)


ZERO = ExactSum()


@lru_cache(maxsize=1024)  # most experiments know two rewards, 0 and 1
def _with_square(value: float) -> tuple[ExactSum, ExactSum]:
    exact = ExactSum.of(value)
    return exact, exact.squared()


class Moments(msgspec.Struct, frozen=True, gc=False):
    """Count, sum and sum of squares of some rewards, all exact."""

    count: int = 0
    total: ExactSum = ZERO
    squares: ExactSum = ZERO

    def with_reward(self, reward: float, times: int = 1) -> Moments:
        """These rewards with one more (times = 1) or one less (times = -1)."""
        value, square = _with_square(reward)
        total, squares = self.total, self.squares
        if not (total.shift or squares.shift or square.shift):  # whole numbers, as with binary rewards
            return Moments(
                self.count + times,
                ExactSum(total.numerator + times * value.numerator),
                ExactSum(squares.numerator + times * square.numerator),
            )
        return Moments(self.count + times, total.plus(value, times), squares.plus(square, times))

    def with_rewards(self, rewards: Iterable[float]) -> Moments:
        """These rewards with some more."""
        moments = self
        for reward, times in Counter(rewards).items():
            moments = moments.with_reward(reward, times)
        return moments

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total.plus(other.total), self.squares.plus(other.squares))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.count - other.count, self.total.plus(other.total, -1), self.squares.plus(other.squares, -1))

    def mean(self) -> float | None:
        """The mean, rounded once to the nearest double (int / int is correctly rounded); None without a reward."""
        if not self.count:
            return None
        return self.total.numerator / (self.count << self.total.shift)

    def variance(self) -> float | None:
        """The unbiased variance (n - 1), rounded once; None below two rewards."""
        if self.count < 2:  # noqa: PLR2004 - one value has no spread
            return None
        if not (self.total.shift or self.squares.shift):
            spread = self.count * self.squares.numerator - self.total.numerator * self.total.numerator
            return spread / (self.count * (self.count - 1))
        # (n * squares - total^2) / (n * (n - 1)) over the common denominator 4^total.shift * 2^rest.
        shift = max(self.squares.shift, 2 * self.total.shift)
        squares = self.squares.numerator << (shift - self.squares.shift)
        total_squared = self.total.numerator**2 << (shift - 2 * self.total.shift)
        return (self.count * squares - total_squared) / ((self.count * (self.count - 1)) << shift)


NO_REWARDS = Moments()
