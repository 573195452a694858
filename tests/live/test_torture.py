"""Acknowledged is durable, counted once, in order, whatever breaks meanwhile: the short form of `make torture`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from testing.torture.campaign import faults_of, play
from testing.torture.fault import in_turn
from testing.torture.stage import Stage, postgres_stage, sqlite_stage

pytestmark = [pytest.mark.process, pytest.mark.serial]
_SECONDS = 12.0
_CHOSEN = {
    "sqlite": ("kill -9 of a worker", "kill -9 of a service", "file locked by another process"),
    "postgresql": (
        "kill -9 of a worker",
        "kill -9 of PostgreSQL",
        "restart of PostgreSQL",
        "connection cut: after",
        "connection cut: within_answer",
        "all connections cut",
    ),
}


@pytest.mark.parametrize("staged", [sqlite_stage, postgres_stage], ids=["sqlite", "postgresql"])
def test_nothing_is_lost_or_doubled(staged: Callable[[], AbstractContextManager[Stage]]) -> None:
    """Clients in processes of their own write down every call; afterwards all of them are compared with the database."""
    with staged() as stage:
        chosen = [fault for fault in faults_of(stage) if fault.name in _CHOSEN[stage.engine]]
        assert len(chosen) == len(_CHOSEN[stage.engine])
        (outcome,) = play(stage, [in_turn(chosen)], _SECONDS, print)
    assert outcome.anomalies == []
    assert outcome.unexpected == []
    assert outcome.injections > 0
    assert outcome.acknowledged > 0
