"""What a process keeps of the experiments that it has seen, and what it drops first."""

from __future__ import annotations

import pytest

from service.engine import ledger_cache
from service.engine.ledger_cache import LedgerCache
from testing.ledgers import new_ledger
from testing.workers import Workers


def test_the_least_recently_used_is_dropped_first(workers: Workers, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Used is whatever a group was decided on, and whatever was read."""
    monkeypatch.setattr(ledger_cache, "_LEDGERS", 3)
    names = [f"{key}-{name}" for name in "abcd"]
    for name in names:
        workers.create(name, [("a", 0.0), ("b", 0.0)])
    a, b, c, d = names
    cache, groups = LedgerCache(), workers.contexts[0].database.groups
    workers.run(cache.read(groups, {a}))
    workers.run(cache.read(groups, {b}))
    workers.run(cache.read(groups, {c}))
    assert list(cache.known({a})) == [a]
    workers.run(cache.read(groups, {d}))
    assert list(cache.held) == [c, a, d]
    assert workers.run(cache.read(groups, {"nobody"})) == {}


def test_the_oldest_draws_are_forgotten_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to half of what all ledgers may keep together, so that it is not done for every draw."""
    monkeypatch.setattr(ledger_cache, "_RECENT_DRAWS", 16)
    cache, ledger = LedgerCache(), new_ledger()
    cache.held = {"e": ledger, "other": new_ledger()}
    for _ in range(8):
        ledger.draw(None, None, 0)
    cache.trim([ledger])
    assert list(ledger.recent_draws) == list(range(1, 9))
    ledger.draw(None, None, 0)
    cache.trim([ledger])
    assert list(ledger.recent_draws) == [6, 7, 8, 9]
