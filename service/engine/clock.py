"""The wall clock, in the unit that is stored, and times as people read and write them.

Decisions never read it: their time is given to them.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_microseconds() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


@lru_cache(maxsize=256)
def time_text(microseconds: int | None) -> str | None:
    """UTC in ISO 8601, if there is a time. What was decided together has one."""
    return None if microseconds is None else text_of_time(microseconds)


def text_of_time(microseconds: int) -> str:
    """UTC in ISO 8601, to the microsecond."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_second_text(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    """Answers of the same second share its text."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def microseconds_of(given: datetime) -> int:
    """A time that somebody gave; without an offset it is UTC."""
    return ((given if given.tzinfo else given.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
