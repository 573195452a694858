"""Which experiments' queued rewards wait after a failure, and until when: one that fails does not hold up the others."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from bestarm.deadline import Deadline
from bestarm.errors import Error
from bestarm.exchange import pause


@dataclass(slots=True)
class Hold:
    """One wait."""

    failures: int
    since: float
    until: Deadline


class Holds:
    """The waits, of experiments by their keys and of the whole service. Their owner holds a lock around every call."""

    def __init__(self) -> None:
        self._held: dict[str, Hold] = {}
        self._service: Hold | None = None
        self._last_success = 0.0

    def __contains__(self, experiment: str) -> bool:
        return experiment in self._held

    def fail(self, experiment: str, trouble: Error) -> None:
        """Let the experiment wait, longer after each failure, and not less than the service asks for."""
        self._held[experiment] = _longer(self._held.get(experiment), trouble)

    def fail_all(self, trouble: Error) -> None:
        """Let everything wait: nothing can be sent to anyone."""
        self._service = _longer(self._service, trouble)

    def succeed(self, experiment: str) -> None:
        """The service has taken rewards of this experiment."""
        self._held.pop(experiment, None)
        self._service = None
        self._last_success = time.monotonic()

    def end_waiting(self) -> None:
        """Everything may be tried now; what failed is still known to have failed."""
        for hold in (*self._held.values(), *((self._service,) if self._service else ())):
            hold.until = Deadline.after(0)

    def seconds_left(self, experiments: Collection[str]) -> float | None:
        """How long until one of these may be tried; None if there is none of them."""
        if not experiments:
            return None
        whole = self._service.until.left() if self._service else 0.0
        least = min(self._left(experiment) for experiment in experiments)
        return max(whole, least, 0.0)

    def due(self, experiments: Collection[str]) -> list[str]:
        """Those of them that may be tried now, the fewest failures first: who is well waits for nobody."""
        waiting = [experiment for experiment in experiments if self._left(experiment) <= 0]
        return sorted(waiting, key=lambda experiment: hold.failures if (hold := self._held.get(experiment)) else 0)

    def is_alone(self, experiment: str) -> bool:
        """Whether it fails while the service takes the rewards of others."""
        hold = self._held.get(experiment)
        return hold is not None and self._last_success > hold.since

    def _left(self, experiment: str) -> float:
        hold = self._held.get(experiment)
        return 0.0 if hold is None else hold.until.left()


def _longer(hold: Hold | None, trouble: Error) -> Hold:
    failures = 1 if hold is None else hold.failures + 1
    since = time.monotonic() if hold is None else hold.since
    return Hold(failures, since, Deadline.after(pause(failures, trouble)))
