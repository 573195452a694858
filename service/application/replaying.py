"""Replay: recompute every decision, every assignment and every statistic from the history, and name the first difference.

One pass in assignment order follows each assignment from state to state up to its stored row. One pass in sequence order
feeds the history to a fresh ledger, which must decide every draw alike and end with the stored statistics. Events carry the state
before and after, so neither pass remembers more than one assignment: memory is bounded whatever the length of the history.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from service.application import specs
from service.application.ledger import Ledger
from service.domain import ArmRecord, ArmStatistics, Assignment, Event, Progress, event_of_draw
from service.storage import reading

if TYPE_CHECKING:
    from service.domain import Batch, ObservationRecord
    from service.storage.database import Connection, Database

Item = TypeVar("Item")
# Called with (events checked, events in all), both passes counted.
Report = Callable[[int, int], None]

_REPORT_EVERY = 1_000
# What each kind of event may do to an assignment's status.
_LEGAL = {
    "reward": ({"pending", "expired"}, "rewarded"),
    "correction": ({"rewarded", "voided"}, "rewarded"),
    "expiry": ({"pending"}, "expired"),
    "maturity": ({"rewarded"}, "rewarded"),
    "void": ({"pending", "rewarded", "expired"}, "voided"),
}


class Different(Exception):  # noqa: N818 - the outcome of a replay, not a failure of it
    """The first place where the stored data is not what the history makes it."""


@dataclass(slots=True)
class _Ahead(Generic[Item]):
    """A stream with its next item in view."""

    stream: AsyncIterator[Item]
    next: Item | None = None

    async def advance(self) -> None:
        self.next = await anext(self.stream, None)


async def replay(database: Database, key: str, report: Report = lambda _done, _all: None) -> int:
    """Check the whole history of an experiment; the number of events, or Different is raised."""
    async with database.reading() as connection:  # one snapshot for both passes: traffic that goes on is no difference
        stored, records = await reading.experiment_by_key(connection, key)
        total = 2 * stored.version
        # Assignments first: an edited event is named itself, not the first decision that would have been another one.
        await _check_assignments(connection, stored, lambda done: report(done, total))
        sequence = _Sequence(stored, records, connection)
        async for event in reading.history(connection, stored.experiment.id):
            await sequence.check(event)
            if event.sequence % _REPORT_EVERY == 0:
                report(stored.version + event.sequence, total)
        await sequence.finish()
        report(total, total)
        return stored.version


class _Sequence:
    """The pass in sequence order."""

    def __init__(self, stored: Progress, records: list[ArmRecord], connection: Connection) -> None:
        experiment_id = stored.experiment.id
        self._stored, self._records = stored, records
        self._ledger: Ledger | None = None
        self._batches: _Ahead[Batch] = _Ahead(reading.all_batches(connection, experiment_id))
        self._observations: _Ahead[ObservationRecord] = _Ahead(reading.all_observations(connection, experiment_id))
        self._in_run = 0

    async def check(self, event: Event) -> None:
        if self._ledger is None:
            self._ledger = self._begin(event)
            await self._batches.advance()
            await self._observations.advance()
            return
        ledger = self._ledger
        if event.sequence != ledger.version + 1:
            raise Different(f"Event {ledger.version + 1} is missing: event {event.sequence} follows.")
        self._check_run(event)
        try:
            again = self._repeat(ledger, event)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as unreadable:
            raise Different(f"Event {event.sequence} ({event.kind}) cannot be repeated: {unreadable!r}.") from unreadable
        if event != again:
            _compare(f"Event {event.sequence} ({event.kind})", _plain(event), _plain(again))
        for planned in ledger.forget_changes():
            _compare(f"Batch {planned.number}", _plain(self._batches.next), _plain(planned))
            await self._batches.advance()
        if event.kind == "observation":
            await self._check_observation(event)

    def _begin(self, event: Event) -> Ledger:
        if event.sequence != 1 or event.kind != "created" or event.details is None:
            raise Different(f"The history does not begin with the creation: event {event.sequence} is {event.kind}.")
        experiment, arms = specs.created_from(event.details, self._stored.experiment.id)
        progress = Progress(experiment, version=1, as_of=event.at, draws=0, epoch=1)
        return Ledger(progress, [ArmRecord(arm, ArmStatistics()) for arm in arms])

    def _repeat(self, ledger: Ledger, event: Event) -> Event:
        """Do again what the event says was done; the event that comes of it."""
        details: dict[str, Any] = dict(event.details or {})
        if event.kind == "draw":
            return event_of_draw(ledger.draw(None, None, event.at))
        if event.kind == "observation" and event.arm is not None and event.after is not None:
            ledger.observe(event.arm, _number(event.after.reward), None, event.at)
        elif event.kind in _LEGAL:
            self._move(ledger, event)
        elif event.kind in ("lifecycle", "patch"):
            changed = specs.changed_experiment(ledger.experiment, details)
            details |= specs.change_details(ledger.experiment, changed)
            ledger.change_settings(event.kind, changed, details, event.at)
        elif event.kind == "arm_added":
            ledger.add_arm(specs.arm_from(details["arm"]), details, event.at)
        elif event.kind == "arm_changed" and event.arm is not None:
            arm = ledger.arms[event.arm]
            changed_arm = specs.changed_arm(arm, details)
            ledger.change_arm(changed_arm, specs.change_details(arm, changed_arm), event.at)
        elif event.kind == "expiry_run":
            ledger.note("expiry_run", details, event.at)
        else:
            raise Different(f"Event {event.sequence} is of no known kind: {event.kind!r}.")
        return ledger.last_event()

    @staticmethod
    def _move(ledger: Ledger, event: Event) -> None:
        allowed, status = _LEGAL[event.kind]
        before, after = event.before, event.after
        if before is None or after is None or event.arm is None or event.draw is None or event.epoch is None:
            raise Different(f"Event {event.sequence} ({event.kind}) lacks its assignment or its states.")
        if before.status not in allowed or after.status != status:
            raise Different(f"Event {event.sequence}: a {event.kind} cannot lead from {before.status} to {after.status}.")
        if event.kind == "expiry" and after.reward != event.expiry_reward:
            raise Different(f"Event {event.sequence}: an expiry as {event.expiry_reward} was counted as {after.reward}.")
        objection = None if after.reward is None else ledger.experiment.reward.objection_to(after.reward)
        if objection:
            raise Different(f"Event {event.sequence}: the reward {after.reward} is not possible. {objection}")
        assignment = Assignment(
            draw=event.draw,
            token=0,
            sequence=0,
            arm=event.arm,
            unit=None,
            reason="",
            epoch=event.epoch,
            created_at=0,
            expires_at=None,
            expiry_reward=event.expiry_reward,
            state=before,
        )
        ledger.move(assignment, event.kind, after.status, after.reward, event.at)

    def _check_run(self, event: Event) -> None:
        """An entry "expiry run" of the audit log counts the expiries right before it."""
        if event.kind == "expiry_run":
            _compare(f"Event {event.sequence} (expiry_run)", dict(event.details or {}), {"expired": self._in_run})
        if event.kind != "maturity":
            self._in_run = self._in_run + 1 if event.kind == "expiry" else 0

    async def _check_observation(self, event: Event) -> None:
        named = self._observations.next
        if named is not None and named.sequence == event.sequence:
            reward = event.after.reward if event.after else None
            _compare(
                f"Observation {named.id!r}", {"arm": named.arm, "reward": named.reward}, {"arm": event.arm, "reward": reward}
            )
            await self._observations.advance()

    async def finish(self) -> None:
        """The end of the history must be what is stored."""
        ledger = self._ledger
        if ledger is None:
            raise Different("There is no history.")
        for left, what in ((self._batches.next, "Batch"), (self._observations.next, "Observation")):
            if left is not None and left.sequence <= ledger.version:
                raise Different(f"{what} {_plain(left)} has no event in the history.")
        # The snapshots are for people to look at and no part of the history.
        again = replace(ledger.progress, snapshot_at=self._stored.snapshot_at, snapshot_stride=self._stored.snapshot_stride)
        _compare("The experiment", _plain(self._stored), _plain(again))
        if len(self._records) != len(ledger.arms):
            raise Different(f"There are {len(self._records)} arms stored, but {len(ledger.arms)} in the history.")
        for record, recounted in zip(self._records, ledger.records(range(len(ledger.arms))), strict=True):
            _compare(f"Arm {record.arm.key!r}", _plain(record), _plain(recounted))


async def _check_assignments(connection: Connection, stored: Progress, report: Callable[[int], None]) -> None:
    """The pass in assignment order: every chain of states ends in the stored row, every row has its chain."""
    rows = _Ahead(reading.all_assignments(connection, stored.experiment.id))
    await rows.advance()
    chain: Assignment | None = None
    checked = 0
    async for event in reading.history(connection, stored.experiment.id, by_assignment=True):
        if chain is None or event.draw != chain.draw:
            await _close_chain(chain, rows)
            chain = _open_chain(event, 1 if chain is None else chain.draw + 1)
        else:
            chain = _follow(chain, event)
        checked += 1
        if checked % _REPORT_EVERY == 0:
            report(checked)
    await _close_chain(chain, rows)
    if rows.next is not None and rows.next[0].sequence <= stored.version:
        raise Different(f"Assignment {rows.next[0].draw} has no draw in the history.")


def _open_chain(event: Event, expected: int) -> Assignment:
    if event.kind != "draw" or event.draw != expected or event.arm is None or event.epoch is None or event.after is None:
        raise Different(f"Assignment {expected} does not begin with its draw: event {event.sequence} is {event.kind}.")
    return Assignment(
        draw=event.draw,
        token=0,
        sequence=event.sequence,
        arm=event.arm,
        unit=None,
        reason=event.reason or "",
        epoch=event.epoch,
        created_at=event.at,
        expires_at=event.expires_at,
        expiry_reward=event.expiry_reward,
        state=event.after,
    )


def _follow(chain: Assignment, event: Event) -> Assignment:
    known = (chain.arm, chain.epoch, chain.expiry_reward, chain.state)
    if (event.arm, event.epoch, event.expiry_reward, event.before) != known:
        same = {"arm": chain.arm, "epoch": chain.epoch, "expiry_reward": chain.expiry_reward, "before": _plain(chain.state)}
        given = {"arm": event.arm, "epoch": event.epoch, "expiry_reward": event.expiry_reward, "before": _plain(event.before)}
        _compare(f"Event {event.sequence} ({event.kind} of assignment {chain.draw})", given, same)
    after = event.after or chain.state
    told = event.kind in ("reward", "correction")
    rewarded_at = event.at if told else (chain.rewarded_at if after.status == "rewarded" else None)
    return replace(chain, state=after, rewarded_at=rewarded_at)


async def _close_chain(chain: Assignment | None, rows: _Ahead[tuple[Assignment, int | None]]) -> None:
    if chain is None:
        return
    if rows.next is None or rows.next[0].draw != chain.draw:
        raise Different(f"Assignment {chain.draw} is missing: it is in the history only.")
    row, due_at = rows.next
    known = replace(chain, token=row.token, unit=row.unit, idempotency_key=row.idempotency_key)
    if (row, due_at) != (known, known.due_at):
        _compare(f"Assignment {chain.draw}", _plain(row) | {"due_at": due_at}, _plain(known) | {"due_at": known.due_at})
    await rows.advance()


def _plain(thing: object) -> dict[str, Any]:
    """As nested dictionaries, to be compared field by field."""
    return {} if thing is None else msgspec.to_builtins(thing)


def _compare(what: str, stored: dict[str, Any], again: dict[str, Any], path: str = "") -> None:
    """Raise Different with the first field that is not the same."""
    for name in again.keys() | stored.keys():
        old, new = stored.get(name), again.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            _compare(what, old, new, f"{path}{name}.")
        elif old != new:
            raise Different(f"{what}: {path}{name} is stored as {_short(old)}, the history makes it {_short(new)}.")


def _short(value: object) -> str:
    text = str(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - a line of a terminal


def _number(value: float | None) -> float:
    if value is None:
        raise ValueError("there is no reward")
    return value
