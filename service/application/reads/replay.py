"""Replay: recompute every decision, every assignment and every statistic from the history, and name the first difference.

One pass in assignment order follows each assignment from state to state up to its stored row. One pass in sequence order
feeds the history to a fresh ledger, which must decide every draw alike and end with the stored statistics. Events carry the state
before and after, so neither pass remembers more than one assignment: memory is bounded whatever the length of the history.
Of a pruned experiment that history is gone; what is left of it is checked by service/application/reads/audit_replay.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from dataclasses import replace as replace_record
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from msgspec.structs import replace

from service.application.reads.audit_replay import AuditReplay
from service.application.reads.differences import Difference, compare, plain
from service.application.reads.repeated_changes import begun, named_failures, repeat_change, sign_as
from service.domain import (
    TRAITS,
    ArmRecord,
    Assignment,
    Event,
    IllegalStep,
    ObservationRecord,
    Progress,
    after_step,
    event_of_draw,
)
from service.domain.findings import Findings
from service.engine.ledger import Ledger
from service.storage import pruning
from service.storage.queries import stored_experiments, stored_history

if TYPE_CHECKING:
    from service.domain import Batch, StepKind
    from service.domain.findings import Finding, FindingKind
    from service.storage.database import Connection, Database

Item = TypeVar("Item")
# Called with (events checked, events in all), both passes counted.
Report = Callable[[int, int], None]

_REPORT_EVERY = 1_000


@dataclass(slots=True)
class _Peekable(Generic[Item]):
    """A stream with its next item in view."""

    stream: AsyncIterator[Item]
    next: Item | None = None

    async def advance(self) -> None:
        self.next = await anext(self.stream, None)


@dataclass(frozen=True, slots=True)
class Replayed:
    """How much of a history was found to be without difference."""

    version: int
    events: int
    """Those that were there to be checked; of an experiment that was not pruned all of them, as many as the version says."""
    pruned_at: int | None = None
    pruning: bool = False
    """Is some of what was pruned still to go?"""

    def sentence(self) -> str:
        """What was checked, and what could not be."""
        told = f"{self.events:,} events replayed, no difference."
        if self.pruned_at is None:
            return told
        day = f"{datetime.fromtimestamp(self.pruned_at / 1_000_000, UTC):%Y-%m-%d}"
        gone = f"Pruned on {day}: {self.version - self.events:,} events are gone; no draw, reward or sum before can be checked."
        return f"{told} {gone}" + (" Some of them are still on their way out: run `bestarm prune` again." if self.pruning else "")


async def replay(database: Database, key: str, report: Report = lambda _done, _all: None) -> Replayed:
    """Check the whole history of an experiment, or what pruning has left of it; Difference is raised."""
    async with database.reading() as connection:  # one snapshot for all passes: traffic that goes on is no difference
        stored, records = await stored_experiments.experiment_by_key(connection, key)
        return await _replay(connection, stored, records, report, whole=True)


async def replay_loaded(
    database: Database, tombstone: str, loaded: Progress, report: Report = lambda _done, _all: None, *, whole: bool
) -> Replayed:
    """The same for an experiment that is hidden still, as it will be; if not the whole of it, then what people did."""
    async with database.reading() as connection:
        stored, records = await stored_experiments.experiment_by_key(connection, tombstone)
        experiment = replace_record(loaded.experiment, id=stored.experiment.id)
        return await _replay(connection, replace(loaded, experiment=experiment, uncounted=()), records, report, whole=whole)


async def _replay(connection: Connection, stored: Progress, records: list[ArmRecord], report: Report, *, whole: bool) -> Replayed:
    findings = await stored_experiments.findings_of(connection, stored.experiment.id)
    if not whole or stored.experiment.pruned_at is not None:
        left = AuditReplay(stored, records, pruning=await pruning.is_under_way(connection, stored.experiment.id))
        async for event in stored_history.history(connection, stored.experiment.id):
            left.check(event)
            if event.sequence % _REPORT_EVERY == 0:
                report(event.sequence, stored.version)
        left.finish(findings, traffic_left=await pruning.has_traffic(connection, stored.experiment.id))
        report(stored.version, stored.version)
        return Replayed(stored.version, left.events, stored.experiment.pruned_at, left.pruning)
    total = 2 * stored.version
    # Assignments first: an edited event is named itself, not the first decision that would have been another one.
    await _check_assignments(connection, stored, lambda done: report(done, total))
    sequence = _Sequence(stored, records, connection)
    async for event in stored_history.history(connection, stored.experiment.id):
        await sequence.check(event)
        if event.sequence % _REPORT_EVERY == 0:
            report(stored.version + event.sequence, total)
    await sequence.finish(findings)
    report(total, total)
    return Replayed(stored.version, stored.version)


class _Sequence:
    """The pass in sequence order."""

    def __init__(self, stored: Progress, records: list[ArmRecord], connection: Connection) -> None:
        experiment_id = stored.experiment.id
        self._stored, self._records = stored, records
        self._ledger: Ledger | None = None
        self._batches: _Peekable[Batch] = _Peekable(stored_history.all_batches(connection, experiment_id))
        self._observations: _Peekable[ObservationRecord] = _Peekable(stored_history.all_observations(connection, experiment_id))
        self._in_run = 0
        self._findings = Findings()
        self._changing: dict[str, tuple[ObservationRecord, ObservationRecord]] = {}
        """Observations that were corrected, between their arrival and their last change: as they are then, and as stored."""

    async def check(self, event: Event) -> None:
        if self._ledger is None:
            self._ledger = begun(event, self._stored.experiment.id)
            await self._batches.advance()
            await self._observations.advance()
            return
        ledger = self._ledger
        if event.sequence != ledger.version + 1:
            raise Difference(f"Event {ledger.version + 1} is missing: event {event.sequence} follows.")
        self._check_run(event)
        with named_failures(event):
            again = self._repeat(ledger, event)
        if event != again:
            compare(f"Event {event.sequence} ({event.kind})", plain(event), plain(again))
        with named_failures(event):
            self._findings.follow(event)
        for planned in ledger.forget_changes():
            compare(f"Batch {planned.number}", plain(self._batches.next), plain(planned))
            await self._batches.advance()
        if event.kind == "observation":
            await self._check_observation(event)

    def _repeat(self, ledger: Ledger, event: Event) -> Event:
        """Do again what the event says was done; the event that comes of it."""
        traits = TRAITS.get(event.kind)
        family = None if traits is None else traits.family
        sign_as(ledger, event)
        if family == "draw":
            return event_of_draw(ledger.draw(None, None, event.at))
        if family == "observation" and event.arm is not None and event.after is not None:
            ledger.observe(event.arm, _number(event.after.reward), None, event.at)
        elif family == "step":
            _take_step(ledger, event)
        elif family == "observation step":
            details: dict[str, Any] = dict(event.details or {})
            self._change_observation(ledger, event, details["observation"])
        else:
            repeat_change(ledger, event, family)
        if ledger.log.last_event is None:
            raise Difference(f"Event {event.sequence} ({event.kind}) does nothing.")
        return ledger.log.last_event

    def _check_run(self, event: Event) -> None:
        """An entry "expiry run" of the audit log counts the expiries right before it."""
        if event.kind == "expiry_run":
            compare(f"Event {event.sequence} (expiry_run)", dict(event.details or {}), {"expired": self._in_run})
        if event.kind != "maturity":
            self._in_run = self._in_run + 1 if event.kind == "expiry" else 0

    async def _check_observation(self, event: Event) -> None:
        named = self._observations.next
        if named is None or named.sequence != event.sequence or event.arm is None or event.epoch is None:
            return
        reward = _number(event.after.reward if event.after else None)
        told = ObservationRecord(named.id, event.arm, reward, event.sequence, event.epoch, "rewarded", event.sequence)
        self._settle_observation(told, named)
        await self._observations.advance()

    def _change_observation(self, ledger: Ledger, event: Event, name: str) -> None:
        """Lead an observation on from what the history has made of it so far."""
        if name not in self._changing:
            raise Difference(
                f"Observation {name!r} is changed by event {event.sequence}, which what is stored of it does not say."
            )
        known, stored = self._changing.pop(name)
        reward = None if event.after is None else event.after.reward
        self._settle_observation(ledger.change_observation(known, reward, event.at), stored)

    def _settle_observation(self, known: ObservationRecord, stored: ObservationRecord) -> None:
        """The last change must leave what is stored; until then it is kept in mind, and only its reward and status may differ."""
        last = known.changed == stored.changed
        awaited = known if last else replace_record(known, reward=stored.reward, status=stored.status, changed=stored.changed)
        compare(f"Observation {known.id!r}", plain(stored), plain(awaited))
        if not last:
            self._changing[known.id] = known, stored

    def _check_findings(self, stored: dict[tuple[FindingKind, int], Finding]) -> None:
        """Those that hold by the history are those that are stored."""
        held = self._findings.held
        for name in [*held, *stored]:
            kind, arm = name
            compare(f"Finding {kind} about arm {arm}", plain(stored.get(name)), plain(held.get(name)))

    async def finish(self, findings: dict[tuple[FindingKind, int], Finding]) -> None:
        """The end of the history must be what is stored."""
        ledger = self._ledger
        if ledger is None:
            raise Difference("There is no history.")
        self._check_findings(findings)
        for left, what in ((self._batches.next, "Batch"), (self._observations.next, "Observation")):
            if left is not None and left.sequence <= ledger.version:
                raise Difference(f"{what} {plain(left)} has no event in the history.")
        for name, (known, stored) in self._changing.items():
            raise Difference(f"Observation {name!r} changed last in event {stored.changed}, the history says {known.changed}.")
        # The snapshots are for people to look at and no part of the history.
        again = replace(ledger.progress, snapshot_at=self._stored.snapshot_at, snapshot_stride=self._stored.snapshot_stride)
        compare("The experiment", plain(self._stored), plain(again))
        if len(self._records) != len(ledger.arms):
            raise Difference(f"There are {len(self._records)} arms stored, but {len(ledger.arms)} in the history.")
        for record, recounted in zip(self._records, ledger.records(range(len(ledger.arms))), strict=True):
            compare(f"Arm {record.arm.key!r}", plain(record), plain(recounted))


def _take_step(ledger: Ledger, event: Event) -> None:
    """Lead the assignment of an event on as the event says it was."""
    before, after = event.before, event.after
    if before is None or after is None or event.arm is None or event.draw is None or event.epoch is None:
        raise Difference(f"Event {event.sequence} ({event.kind}) lacks its assignment or its states.")
    objection = None if after.reward is None else ledger.experiment.reward.objection_to(after.reward)
    if objection:
        raise Difference(f"Event {event.sequence}: the reward {after.reward} is not possible. {objection}")
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
    ledger.step(assignment, cast("StepKind", event.kind), after.reward, event.at)


async def _check_assignments(connection: Connection, stored: Progress, report: Callable[[int], None]) -> None:
    """The pass in assignment order: every chain of states ends in the stored row, every row has its chain."""
    rows = _Peekable(stored_history.all_assignments(connection, stored.experiment.id))
    await rows.advance()
    chain: Assignment | None = None
    checked = 0
    async for event in stored_history.history(connection, stored.experiment.id, by_assignment=True):
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
        raise Difference(f"Assignment {rows.next[0].draw} has no draw in the history.")


def _open_chain(event: Event, expected: int) -> Assignment:
    if event.kind != "draw" or event.draw != expected or event.arm is None or event.epoch is None or event.after is None:
        raise Difference(f"Assignment {expected} does not begin with its draw: event {event.sequence} is {event.kind}.")
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
        same = {"arm": chain.arm, "epoch": chain.epoch, "expiry_reward": chain.expiry_reward, "before": plain(chain.state)}
        given = {"arm": event.arm, "epoch": event.epoch, "expiry_reward": event.expiry_reward, "before": plain(event.before)}
        compare(f"Event {event.sequence} ({event.kind} of assignment {chain.draw})", given, same)
    reward = None if event.after is None else event.after.reward
    try:
        return after_step(chain, cast("StepKind", event.kind), reward, event.at)
    except (IllegalStep, KeyError) as impossible:
        raise Difference(f"Event {event.sequence} of assignment {chain.draw}: {impossible}.") from impossible


async def _close_chain(chain: Assignment | None, rows: _Peekable[tuple[Assignment, int | None]]) -> None:
    if chain is None:
        return
    if rows.next is None or rows.next[0].draw != chain.draw:
        raise Difference(f"Assignment {chain.draw} is missing: it is in the history only.")
    row, due_at = rows.next
    known = replace(chain, token=row.token, unit=row.unit, idempotency_key=row.idempotency_key)
    if (row, due_at) != (known, known.due_at):
        compare(f"Assignment {chain.draw}", plain(row) | {"due_at": due_at}, plain(known) | {"due_at": known.due_at})
    await rows.advance()


def _number(value: float | None) -> float:
    if value is None:
        raise ValueError("there is no reward")
    return value
