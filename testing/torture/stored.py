"""What the database holds of one experiment when everything is over, read past the service."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from fractions import Fraction

from service.application.reads.differences import Difference
from service.application.reads.replay import replay
from service.domain.assignment import Assignment, AssignmentState
from service.exact import ExactSum
from service.storage.database import Database
from testing.rows import Rows


@dataclass(frozen=True, slots=True)
class StoredArm:
    """The statistics of an arm, as they are kept."""

    key: str
    pending: int
    observations: int
    total: Fraction
    squares: Fraction


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One line of the history."""

    sequence: int
    kind: str
    at: int
    arm: int | None
    draw: int | None
    status_before: str | None
    reward_before: float | None
    status_after: str | None
    reward_after: float | None


@dataclass(slots=True)
class StoredObservation:
    """A reward without an ask, by its id."""

    arm: int
    reward: float


@dataclass(slots=True)
class Stored:
    """One experiment: its history and all that is kept of it."""

    key: str
    version: int
    draws: int
    arms: list[StoredArm]
    assignments: list[Assignment]
    events: list[StoredEvent]
    observations: dict[str, StoredObservation]
    difference: str | None
    """What replay found."""


def _exact(text: str) -> Fraction:
    exact = ExactSum.parse(text)
    return Fraction(exact.numerator, 2**exact.shift)


def read_stored(url: str, key: str) -> Stored:
    """Everything about one experiment, as of one version."""
    with Rows(url) as rows:
        (found,) = rows.query("SELECT id, version, draws FROM experiments WHERE key = :key", key=key)
        number, version, draws = found
        kept = {position: (pending, observations) for position, pending, observations, _ in rows.arms_of(key)}
        arms = [
            StoredArm(name, *kept[position], _exact(total), _exact(squares))
            for position, name, total, squares in rows.query(
                "SELECT position, key, reward_sum, reward_squares FROM arms WHERE experiment_id = :number ORDER BY position",
                number=number,
            )
        ]
        columns = (
            "draw, token, sequence, arm, unit, reason, epoch, created_at, expires_at, status, reward, closed, idempotency_key"
        )
        assignments = [
            Assignment(
                draw, token % 2**64, sequence, arm, unit, reason, epoch, at, due, None,
                AssignmentState(status, reward, closed), None, key_of_ask,
            )
            for (draw, token, sequence, arm, unit, reason, epoch, at, due, status, reward, closed, key_of_ask) in rows.query(
                f"SELECT {columns} FROM assignments WHERE experiment_id = :number ORDER BY draw",
                number=number,
            )
        ]  # fmt: skip
        events = [
            StoredEvent(*row)
            for row in rows.query(
                "SELECT sequence, kind, at, arm, draw, status_before, reward_before, status_after, reward_after"
                " FROM events WHERE experiment_id = :number ORDER BY sequence",
                number=number,
            )
        ]
        observations = {
            name: StoredObservation(arm, reward)
            for name, arm, reward in rows.query(
                "SELECT id, arm, reward FROM observations WHERE experiment_id = :number AND status <> 'voided'", number=number
            )
        }
        if rows.query("SELECT version FROM experiments WHERE id = :number", number=number) != [(version,)]:
            return read_stored(url, key)  # the sweeper went on meanwhile
    return Stored(key, version, draws, arms, assignments, events, observations, _difference(url, key))


def _difference(url: str, key: str) -> str | None:
    async def check() -> None:
        database = Database(url, pool_size=1)
        try:
            await replay(database, key)
        finally:
            await database.close()

    try:
        asyncio.run(check())
    except Difference as difference:
        return str(difference)
    return None
