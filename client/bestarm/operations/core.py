"""What both clients have in common, besides the operations."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict

from bestarm.counts import Counter
from bestarm.deadline import Deadline
from bestarm.experiment import Recommendation
from bestarm.forks import begin_anew_after_fork

_REMEMBERED = 1_000
_QUIET_SECONDS = 10.0
# To give up takes time as well: a system wakes who waits on the next whole millisecond, and a connection is to be closed.
_GIVING_UP_SECONDS = 0.002
_GIVING_UP_SHARE = 0.04


class Seldom:
    """Says when it is time to log again: an outage is worth a line every ten seconds, not one for every page."""

    def __init__(self) -> None:
        self._quiet = Deadline(0)

    def is_due(self) -> bool:
        """Whether nothing was said for a while; then it counts as said."""
        if self._quiet.left() > 0:
            return False
        self._quiet = Deadline.after(_QUIET_SECONDS)
        return True


class LastLooks:
    """The last recommendation of each experiment with its ETag, so that one that has not changed is not sent again."""

    def __init__(self) -> None:
        self.forked()
        begin_anew_after_fork(self)

    def forked(self) -> None:
        """A lock of its own for the child of a fork."""
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[str, Recommendation]] = OrderedDict()

    def get(self, experiment: str) -> tuple[str, Recommendation] | None:
        """What was seen last."""
        with self._lock:
            return self._known.get(experiment)

    def put(self, experiment: str, etag: str, seen: Recommendation) -> None:
        """Remember it, and forget whatever was not looked at for longest."""
        with self._lock:
            self._known[experiment] = (etag, seen)
            self._known.move_to_end(experiment)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


class Core:
    """What an operation needs of its client."""

    def __init__(self, timeout: float) -> None:
        self.timeout = _positive(timeout)
        self.counter = Counter()
        self.looks = LastLooks()
        self.outage_log = Seldom()

    def deadline(self, timeout: float | None, *, has_fallback: bool = False) -> Deadline:
        """When a call that begins now has to end. One with a fallback gives up a little earlier, to be back by then."""
        seconds = self.timeout if timeout is None else _positive(timeout)
        return Deadline.after(seconds - min(_GIVING_UP_SECONDS, seconds * _GIVING_UP_SHARE) * has_fallback)


def _positive(seconds: float) -> float:
    if not 0 < seconds < math.inf:
        raise ValueError(f"A time-out is a number of seconds above 0, not {seconds}.")
    return seconds
