"""What the writer counts for operators: once per group, never once per request, so that counting costs next to nothing."""

from __future__ import annotations

import os
from collections import Counter as Tally
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.domain import Changes

_EVENTS = Counter("bestarm_events", "Changes of experiments that are durable, by kind: draw, reward, observation, …", ["kind"])
_GROUP_REQUESTS = Histogram(
    "bestarm_group_requests", "Requests that shared one transaction.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
)
_GROUP_SECONDS = Histogram(
    "bestarm_group_seconds",
    "From the beginning of a group's transaction until it was durable.",
    buckets=(0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 2, 4, 8),
)
_GROUP_FAILURES = Counter("bestarm_group_failures", "Transactions that the database lost; each is looked up and tried again.")
_GROUP_OUTRUNS = Counter("bestarm_group_outruns", "Groups decided anew under a lock, because another worker was faster.")
_QUEUE_DEPTH = Gauge("bestarm_queue_depth", "Requests that wait for the next transaction.", multiprocess_mode="livesum")
_LEDGER_READS = Counter(
    "bestarm_ledger_reads", "Times a worker read an experiment from the database: unknown to it, or changed by another.", ["why"]
)
_READ_UNKNOWN, _READ_CHANGED = _LEDGER_READS.labels("unknown"), _LEDGER_READS.labels("changed")


DoneGroup: TypeAlias = tuple[int, float, dict[str, int]]
"""A group that is durable: how many requests, how many seconds, and how many events of each kind."""
_kept: list[DoneGroup] | None = None


def group_taken(waiting: int) -> None:
    """A group left the queue; so many requests stayed behind."""
    _QUEUE_DEPTH.set(waiting)


def keep_for_worker() -> None:
    """Count nothing here from now on: the worker that this process makes changes for counts what it takes over.

    With several workers every process writes to their folder itself.
    """
    global _kept  # noqa: PLW0603 - the process has one
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        _kept = []


def take_kept() -> list[DoneGroup]:
    """The groups that were kept for the worker."""
    taken = list(_kept or ())
    if _kept:
        _kept.clear()
    return taken


def group_done(requests: int, seconds: float, changed: Iterable[Changes]) -> None:
    """A group is durable."""
    kinds: Tally[str] = Tally()
    for changes in changed:
        if changes.drawn:
            kinds["draw"] += len(changes.drawn)
        kinds.update([step.kind for step in changes.steps])
        kinds.update([event.kind for event in changes.events])
    if _kept is None:
        count_group((requests, seconds, kinds))
    else:
        _kept.append((requests, seconds, kinds))


def count_group(done: DoneGroup) -> None:
    """Add a group to the numbers."""
    requests, seconds, kinds = done
    _GROUP_REQUESTS.observe(requests)
    _GROUP_SECONDS.observe(seconds)
    for kind, times in kinds.items():
        _events(kind).inc(times)


@cache
def _events(kind: str) -> Counter:
    return _EVENTS.labels(kind)


def group_lost() -> None:
    """The database went away under a group."""
    _GROUP_FAILURES.inc()


def group_outrun() -> None:
    """Another worker was faster."""
    _GROUP_OUTRUNS.inc()


def ledger_read(*, known: bool) -> None:
    """A worker had to read an experiment, whole or what changed of it."""
    (_READ_CHANGED if known else _READ_UNKNOWN).inc()
