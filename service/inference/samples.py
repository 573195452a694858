"""What the formulas see of some arms: count, mean and variance of the rewards, one entry an arm."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

# Fewer rows than these are not worth a search for duplicates.
_MANY: Final = 100
# Odd, so that no bit of a number is lost when it is multiplied by this, modulo 2^64: the golden ratio's digits.
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


class Samples(NamedTuple):
    """Statistics of several arms' rewards. Mean and centred squares stay accurate where a raw sum of squares would not."""

    counts: Floats
    means: Floats
    """0 where there is no reward."""
    squares: Floats
    """Sum of (reward - mean)^2; 0 below two rewards."""

    @staticmethod
    def of(counts: Ints, means: Floats, variances: Floats) -> Samples:
        """From counts, means (anything without a reward) and unbiased variances (anything below two rewards)."""
        rewards = np.asarray(counts, np.float64)
        known_means = np.where(rewards > 0, means, 0.0)
        with np.errstate(invalid="ignore"):
            squares = np.where(rewards > 1, (rewards - 1.0) * variances, 0.0)
        return Samples(rewards, known_means, squares)

    def pick(self, index: Any) -> Samples:  # noqa: ANN401 - whatever numpy takes as an index
        """The same statistics of a selection of the arms; `[..., None]` makes room for several candidate means."""
        return Samples(self.counts[index], self.means[index], self.squares[index])

    def shifted(self, by: float) -> Samples:
        """The statistics of the same rewards with a constant added to each."""
        return Samples(self.counts, self.means + by, self.squares)


def are_all(rows: Ints, number: int) -> bool:
    """Do these rows name each of so many once, in order? As many rows may also name one twice and another not at all."""
    return len(rows) == number and bool((rows == np.arange(number)).all())


def distinct(*columns: Floats) -> tuple[Ints, Ints] | None:
    """Rows of which no two are equal, and the place among them of each row's equal; None where that would not halve the work.

    Equal rows have one key, the sum of their numbers' bits times powers of an odd number. Each row is compared with the one that
    stands for it, so that none are taken for equal by their key alone.
    """
    if len(columns[0]) < _MANY:
        return None
    rows = np.array(columns)
    keys = np.zeros(rows.shape[1], np.uint64)
    for bits in rows.view(np.uint64):
        keys += bits
        keys *= _SPREAD
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.ones(len(keys), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    first = order[starts]
    if 2 * len(first) > len(keys):
        return None
    place = np.empty(len(keys), np.int64)
    place[order] = np.cumsum(starts) - 1
    unlike = np.take(rows, first[place], axis=1) != rows
    return None if unlike.any() else (first, place)
