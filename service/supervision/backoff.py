"""How long to wait before a worker that died is replaced: not at all, unless it dies again and again."""

from __future__ import annotations

from dataclasses import dataclass

# Whoever served so long did not die of starting.
_STEADY_SECONDS = 5.0
_FIRST_SECONDS = 0.5
# Often enough that it comes back soon after its trouble is over, seldom enough to leave the others their processor.
_MOST_SECONDS = 30.0


@dataclass(slots=True)
class Backoff:
    """One for each place of a worker."""

    quick_deaths: int = 0

    def seconds_after(self, served_seconds: float) -> float:
        """The pause after a worker that served so long: none after the first quick death, then twice as long each time."""
        if served_seconds >= _STEADY_SECONDS:
            self.quick_deaths = 0
            return 0.0
        self.quick_deaths += 1
        if self.quick_deaths == 1:
            return 0.0
        return min(_MOST_SECONDS, _FIRST_SECONDS * 2.0 ** min(self.quick_deaths - 2, 16))
