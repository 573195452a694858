"""For how long a worker remembers that somebody else writes an experiment, or held its row."""

from __future__ import annotations

import time

import pytest

from service.engine.contention import Contention
from testing.ledgers import new_ledger


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the contention takes for the monotonic clock; a test turns it by its one item."""
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_whoever_was_outrun_locks_for_a_second(clock: list[float]) -> None:
    """Only where the version under the lock is another one than expected; each time anew."""
    contention, progress = Contention(), new_ledger().progress
    found = {"e": progress}
    contention.note_versions(found, {progress.experiment.id: progress.version})
    contention.note_versions(found, {})  # nothing was expected: it had not been seen
    assert not contention.includes("e")
    contention.note_versions(found, {progress.experiment.id: progress.version - 1})
    assert contention.includes("other", "e")
    assert not contention.includes("other")
    clock[0] += 0.9
    assert contention.includes("e")
    clock[0] += 0.2
    assert not contention.includes("e")
    assert contention.until == {}  # so that it costs nothing where one worker serves all


def test_a_row_that_is_held_is_asked_for_first_for_a_minute(clock: list[float]) -> None:
    """Once it can be had, its requests take the lock for a second, and then it is as any other."""
    contention = Contention()
    contention.note_locked(["e"])
    assert contention.locked_among(["e", "other"]) == {"e"}
    assert contention.includes("e")
    contention.note_unlocked({"e"})
    assert contention.locked_among(["e"]) == set()
    assert contention.includes("e")
    clock[0] += 1.1
    assert not contention.includes("e")
    contention.note_locked(["e"])
    clock[0] += 60.1
    assert contention.locked_among(["e"]) == set()
    assert contention.locked == {}
