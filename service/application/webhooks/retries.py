"""When a message is tried again: after seconds, minutes, hours, a day, each pause a little longer or shorter by chance."""

from __future__ import annotations

import random
from dataclasses import dataclass

from service.domain.limits import WEBHOOK_RETRY_SECONDS

_GROWTH = 4
_LONGEST_SECONDS = 86_400.0
# Endpoints come back to many messages at once: not all of them are to be tried again in the same moment.
_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """By default nine attempts over thirty hours: at once, after 5 s, 20 s, 80 s, 5 min, 21 min, 85 min, 6 h, and 23 h."""

    first_seconds: float = WEBHOOK_RETRY_SECONDS
    attempts: int = 9

    def is_over(self, attempts: int) -> bool:
        """Was that the last one?"""
        return attempts >= self.attempts

    def pause(self, attempts: int) -> float:
        """How many seconds to wait after so many attempts."""
        steps = min(attempts, self.attempts) - 1
        planned = min(_LONGEST_SECONDS, self.first_seconds * float(_GROWTH) ** steps)
        return planned * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - nobody gains by guessing it
