"""Outboxes of two workers, and receivers, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.outboxes import Outboxes
from testing.receiver import Receiver
from testing.workers import Workers


@pytest.fixture
def outboxes(workers: Workers) -> Iterator[Outboxes]:
    """On a database of their own, with a running experiment."""
    with Outboxes(workers) as running:
        workers.create("one", [("a", 0.0), ("b", 0.0)])
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One that takes what comes, unless a fault is planned."""
    with Receiver() as running:
        yield running
