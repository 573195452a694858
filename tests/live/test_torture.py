"""Acknowledged is durable, counted once, in order, whatever breaks meanwhile: the short form of `make torture`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import pytest

from testing.torture.campaign import faults_of, play_in_turn
from testing.torture.stage import Stage, pair_stage, postgres_stage, sqlite_stage

pytestmark = [pytest.mark.process, pytest.mark.serial]
_SECONDS = 6.0
# How much shorter faults last than in the full campaign.
_SCALE = 0.03
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
    "synchronous": ("failover",),
}
_STAGES: dict[str, Callable[[], AbstractContextManager[Stage]]] = {
    "sqlite": sqlite_stage,
    "postgresql": postgres_stage,
    "synchronous": partial(pair_stage, synchronous=True),
}


@pytest.mark.parametrize("staged", _STAGES)
def test_nothing_is_lost_or_doubled(staged: str) -> None:
    """Clients in processes of their own write down every call; afterwards all of them are compared with the database."""
    with _STAGES[staged]() as stage:
        chosen = [fault for fault in faults_of(stage) if fault.name in _CHOSEN[staged]]
        assert len(chosen) == len(_CHOSEN[staged])
        outcome = play_in_turn(stage, chosen, "short.", _SECONDS, _SCALE)
    assert outcome.anomalies == []
    assert outcome.unexpected == []
    assert outcome.played.keys() == set(_CHOSEN[staged])
    assert outcome.writes > 0
