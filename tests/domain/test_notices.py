"""How often a change of the leader, or drift, is worth a note."""

from __future__ import annotations

import numpy as np

from service.domain.limits import MOST_NOTICED_ARMS
from service.domain.notices import Noticed, Pace

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND


def _noticed(leader: int | None = 0, sequence: int = 1_000, at: int = 0, drifting: frozenset[int] = frozenset()) -> Noticed:
    return Noticed(leader, sequence, at, at, drifting)


def test_a_leader_is_noted_after_a_minute_and_a_tenth_or_after_an_hour() -> None:
    """Whichever comes first; until then it says how long, at most."""
    pace, noticed = Pace(60), _noticed()
    assert pace.wait_for_leader(noticed, 1_100, _MINUTE) == 0
    assert pace.wait_for_leader(noticed, 1_099, _MINUTE) == 59 * 60
    assert pace.wait_for_leader(noticed, 1_000_000, 20 * _SECOND) == 40
    assert pace.wait_for_leader(noticed, 1_000, 60 * _MINUTE) == 0


def test_a_coin_that_falls_both_ways_is_noted_a_few_times() -> None:
    """Two equal arms over a million rewards, looked at whenever the history has grown by a hundredth: at most 25 notes a decade.

    Without a pace there would be several times as many.
    """
    pace, notes, changes = Pace(60), 0, 0
    rng = np.random.default_rng(1)
    rewards, lead, noticed, before = 2, 0.0, _noticed(0, 1), 0
    while rewards < 1_000_000:
        step = max(1, rewards // 100)
        lead += rng.normal(0, np.sqrt(step))
        rewards += step
        leader = int(lead > 0)
        changes, before = changes + (leader != before), leader
        now = rewards * _SECOND  # one reward a second
        if leader != noticed.leader and pace.wait_for_leader(noticed, rewards, now) == 0:
            notes += 1
            noticed = _noticed(leader, rewards, now)
    assert 0 < notes <= 25 * 6
    assert notes < changes


def test_drift_of_an_arm_is_noted_once_in_a_while() -> None:
    """Not of arms of which it was noted lately, not of more than a note holds, and not within a minute of the last."""
    noticed = _noticed(drifting=frozenset({3}))
    assert noticed.new_among([1, 3, 5]) == [1, 5]
    assert len(noticed.new_among(list(range(1_000)))) == MOST_NOTICED_ARMS
    assert Pace(60).wait_for_drift(noticed, 20 * _SECOND) == 40
    assert Pace(60).wait_for_drift(noticed, _MINUTE) == 0
