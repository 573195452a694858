"""Rewards that wait to be sent: bounded, in their order, in segments whose files are removed as a whole."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Collection, Iterable
from typing import NamedTuple

from bestarm.spool import Spool, SpoolFile, Told

# One request takes up to 10,000; a tenth of it is well below what a service takes a moment for.
SEGMENT = 1_000
# Each is a request to be sent, and with a spool an open file.
_MOST_ADOPTED = 100
_log = logging.getLogger("bestarm")


class Segment:
    """Some rewards, and their file if there is a spool."""

    def __init__(self, file: SpoolFile | None, waiting: Iterable[Told] = ()) -> None:
        self.file = file
        self.waiting = list(waiting)
        self.written = len(self.waiting)

    def append(self, told: Told) -> None:
        """One more. A full disk costs the safety of this one, not the reward."""
        self.waiting.append(told)
        self.written += 1
        if self.file is not None:
            try:
                self.file.append(told)
            except OSError as trouble:
                _log.warning("A reward could not be spooled and waits in memory alone: %s", trouble)

    def force(self) -> None:
        """Have it on the disk."""
        if self.file is not None:
            self.file.force()


class Part(NamedTuple):
    """What a segment has of one experiment."""

    segment: Segment
    rewards: list[Told]


class RewardQueue:
    """The queue. Its owner holds a lock around every call.

    Rewards of experiments whose rewards wait after a failure (`is_held`) fill segments of their own. Else each would keep the
    file of rewards that the service has.
    """

    def __init__(self, size: int, spool: Spool | None) -> None:
        self._size = size
        self._spool = spool
        self._filling: dict[bool, Segment] = {}
        self._sealed: deque[Segment] = deque()
        self._waiting: Counter[str] = Counter()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def count(self, experiment: str) -> int:
        """How many rewards of an experiment wait."""
        return self._waiting[experiment]

    def experiments(self) -> Collection[str]:
        """Whose rewards wait."""
        return self._waiting.keys()

    def put(self, told: Told, *, is_held: bool = False) -> bool:
        """Take a reward, or say that there is no room: whoever calls is a page that cannot wait."""
        if self._length >= self._size:
            return False
        segment = self._filling.get(is_held)
        if segment is None:
            segment = self._filling[is_held] = Segment(self._new_file())
        segment.append(told)
        self._length += 1
        self._waiting[told.experiment] += 1
        if segment.written >= SEGMENT:
            self._sealed.append(self._filling.pop(is_held))
        return True

    def _new_file(self) -> SpoolFile | None:
        try:
            return None if self._spool is None else self._spool.new_file()
        except OSError as trouble:
            _log.warning("Rewards are not spooled: %s", trouble)
            return None

    def segments(self) -> list[Segment]:
        """All that waits, oldest first."""
        return [*self._sealed, *self._filling.values()]

    def by_experiment(self) -> dict[str, list[Part]]:
        """All that waits, in parts that are sent at once. A segment may be filled further meanwhile."""
        found: dict[str, list[Part]] = {}
        for segment in self.segments():
            parts: dict[str, list[Told]] = {}
            for told in segment.waiting:
                parts.setdefault(told.experiment, []).append(told)
            for experiment, rewards in parts.items():
                found.setdefault(experiment, []).append(Part(segment, rewards))
        return found

    def settle(self, segment: Segment, settled: Collection[Told]) -> None:
        """These need not be sent any more. A segment that is empty is gone, and so is its file."""
        if not any(segment is known for known in self.segments()):
            return  # let go meanwhile
        gone = set(map(id, settled))
        self._forget([told for told in segment.waiting if id(told) in gone])
        segment.waiting = [told for told in segment.waiting if id(told) not in gone]
        if not segment.waiting:
            self._remove(segment)

    def _forget(self, settled: Collection[Told]) -> None:
        self._length -= len(settled)
        self._waiting -= Counter(told.experiment for told in settled)

    def _remove(self, segment: Segment) -> None:
        if segment in self._sealed:
            self._sealed.remove(segment)
        self._filling = {is_held: filling for is_held, filling in self._filling.items() if filling is not segment}
        if segment.file is not None:
            segment.file.remove()

    def adopt(self, file: SpoolFile, rewards: list[Told]) -> bool:
        """Take over what a process that died has left, if there is room."""
        if self._length and (len(self._sealed) >= _MOST_ADOPTED or self._length + len(rewards) > self._size):
            return False
        self._sealed.append(Segment(file, rewards))
        self._length += len(rewards)
        self._waiting.update(told.experiment for told in rewards)
        return True

    def release(self) -> None:
        """Let all files go, with what is in them, and forget the rest."""
        for segment in self.segments():
            if segment.file is not None:
                segment.file.release()
        self._sealed.clear()
        self._filling.clear()
        self._waiting.clear()
        self._length = 0
