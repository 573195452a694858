"""How many requests a key may send: a bucket of tokens for each, in this worker.

A bucket holds `burst` tokens and gets `per_second` new ones; each request takes one, whatever it asks for. What is kept of a key
is one number, the time at which its bucket is full again:

    full = max(full, now) + 1 / per_second          for each request that is let through,
    tokens = burst - (full - now) * per_second.

Workers do not talk to each other, so with N of them a key may send up to N times as much. Where there are no keys there is
nobody to tell apart, and no limit.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain.callers import Caller

# What is rounded away when a bucket is filled and emptied.
_ROUNDING = 1e-9
# Buckets that are full again are forgotten when there are so many, and then at twice as many as were left.
_MANY_BUCKETS = 4_096


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests a second, and so many at once; 0 a second means any number."""

    per_second: float
    burst: int

    @property
    def window(self) -> int:
        """Seconds in which an empty bucket fills: `burst` requests in them are always let through."""
        return max(1, math.ceil(self.burst / self.per_second))


class RateLimits:
    """One per worker."""

    def __init__(self, secret: Rate, public: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._secret, self._public = secret, public
        self._clock = clock
        self._full: dict[str, float] = {}
        self._forget_at = _MANY_BUCKETS

    @property
    def limits_secret_keys(self) -> bool:
        """Is there any limit for keys that are not public?"""
        return self._secret.per_second > 0

    def admits(self, caller: Caller) -> bool:
        """Take a token of this caller's, if there is one."""
        rate = self._rate(caller)
        if rate is None or caller.id is None:
            return True
        now = self._clock()
        full = max(self._full.get(caller.id, now), now)
        if full - now > (rate.burst - 1) / rate.per_second + _ROUNDING:
            return False
        self._full[caller.id] = full + 1 / rate.per_second
        if len(self._full) >= self._forget_at:
            self._forget(now)
        return True

    def give_back(self, caller: Caller) -> None:
        """The token was taken for a request that is looked at once more."""
        rate = self._rate(caller)
        if rate is not None and caller.id in self._full:
            self._full[caller.id] -= 1 / rate.per_second

    def require(self, caller: Caller) -> None:
        """Take a token, or refuse."""
        if self.admits(caller):
            return
        rate = self._rate(caller)
        if rate is None or caller.id is None:
            return
        wait = self._full[caller.id] - self._clock() - (rate.burst - 1) / rate.per_second
        raise RateLimited(max(1, math.ceil(wait)), rate.burst, rate.window)

    def _rate(self, caller: Caller) -> Rate | None:
        rate = self._secret if caller.origins is None else self._public
        return rate if rate.per_second and caller.id is not None else None

    def _forget(self, now: float) -> None:
        self._full = {key: full for key, full in self._full.items() if full > now}
        self._forget_at = max(_MANY_BUCKETS, 2 * len(self._full))
