"""The wall clock, in the unit that is stored. Decisions never read it: their time is given to them."""

from __future__ import annotations

import time


def now_microseconds() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000
