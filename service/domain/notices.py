"""Notices: what a worker's own look sees change, written into the history for those who asked to be told.

Early on the leader changes with almost every reward, and arms that are equally good lead in turn for ever. Whoever is told wants
to know who leads now, not each time that a coin fell the other way. So a change is noted at the first look at which

    the last note is at least `settle` old, and the history has grown by a tenth since then,    or
    the last note is at least 60 times `settle` old,

and somebody else leads than was noted last. What comes and goes in between is not told. With a `settle` of a minute the last note
is right again an hour after things are quiet, and there are at most 25 while a history grows to ten times its length, and one an
hour besides. Drift is noted of an arm when the history has doubled since it was noted of it last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from service.domain.limits import MOST_NOTICED_ARMS, NOTICE_SETTLE_SECONDS

_GROWTH = 1.1
_PATIENCE = 60
_SECOND = 1_000_000


class Noticed(NamedTuple):
    """The last notes in a history, or its beginning where there are none."""

    leader: int | None
    leader_sequence: int
    leader_at: int
    drift_at: int
    drifting: frozenset[int]
    """The arms of which drift was noted in the later half of the history."""
    is_first: bool = False
    """No leader was ever noted."""

    def new_among(self, drifting: list[int]) -> list[int]:
        """Of the arms that drift, those of which that was not noted lately; as many as one note holds."""
        return [arm for arm in drifting if arm not in self.drifting][:MOST_NOTICED_ARMS]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a change is worth a note."""

    settle_seconds: float = NOTICE_SETTLE_SECONDS

    def wait_for_leader(self, noticed: Noticed, version: int, now: int) -> float:
        """In how many seconds another leader may be noted: 0 is now. Traffic may bring that forward."""
        passed = (now - noticed.leader_at) / _SECOND
        has_grown = version >= _GROWTH * noticed.leader_sequence
        return max(0.0, self.settle_seconds * (1 if has_grown else _PATIENCE) - passed)

    def wait_for_drift(self, noticed: Noticed, now: int) -> float:
        """In how many seconds drift may be noted: 0 is now."""
        return max(0.0, self.settle_seconds - (now - noticed.drift_at) / _SECOND)
