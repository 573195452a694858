"""What happens to a primary whose standby takes its place."""

from __future__ import annotations

import time
from random import Random

from testing.postgres_pair import PostgresPair
from testing.torture.fault import Fault
from testing.torture.stage import Stage

_BEHIND_SECONDS = 0.2


def _pair(stage: Stage) -> PostgresPair:
    assert stage.pair is not None
    return stage.pair


def follow(stage: Stage) -> None:
    """Have a standby again, unless there is one."""
    if not _pair(stage).has_standby:
        _pair(stage).follow()


def kill_primary(stage: Stage, _dice: Random, _hold: float) -> None:
    """At once, all of it; the standby is promoted."""
    _pair(stage).fail_over()


def freeze_primary(stage: Stage, _dice: Random, _hold: float) -> None:
    """It stands still with all its connections open; the standby is promoted."""
    _pair(stage).fail_over(frozen=True)


def kill_primary_unheard(stage: Stage, _dice: Random, _hold: float) -> None:
    """When its standby has heard nothing for a moment."""
    pair = _pair(stage)
    pair.other.sql("ALTER SYSTEM SET primary_conninfo = ''")
    pair.other.sql("SELECT pg_reload_conf()")
    time.sleep(_BEHIND_SECONDS)
    pair.fail_over()


def faults(pair: PostgresPair) -> list[Fault]:
    """The failovers that a pair of databases goes through, by how it replicates."""
    if pair.is_synchronous:
        return [
            Fault("failover", "synchronous", kill_primary, at_least=20, from_beginning=True, prepare=follow),
            Fault(
                "failover from a frozen primary", "synchronous", freeze_primary, weight=0.1, from_beginning=True, prepare=follow
            ),
        ]
    return [
        Fault("failover", "asynchronous", kill_primary, from_beginning=True, prepare=follow),
        Fault("failover, the standby 0.2 s behind", "asynchronous", kill_primary_unheard, from_beginning=True, prepare=follow),
    ]
