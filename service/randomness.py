"""Random numbers that cannot be guessed, many at a time: asking the system for each alone would cost a draw a microsecond."""

from __future__ import annotations

import os
from struct import unpack

_AT_ONCE = 256
_waiting: list[int] = []


def random_63_bits() -> int:
    """A number from 0 to 2^63 - 1, unpredictable as the system's own."""
    if not _waiting:
        _waiting.extend(number >> 1 for number in unpack(f"{_AT_ONCE}Q", os.urandom(8 * _AT_ONCE)))
    return _waiting.pop()


def _forget_after_fork() -> None:
    _waiting.clear()


# Two processes that share what is waiting would hand out the same numbers.
os.register_at_fork(after_in_child=_forget_after_fork)
