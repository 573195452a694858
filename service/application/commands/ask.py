"""Asks: which arm to show, for one unit or for many."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
from msgspec import structs

from service.application.commands.idempotency import NOTE, OnceCommand, Rendered
from service.domain import Arm, Assignment, AssignmentState, AssignmentStatus, StoredReply, state_when_drawn
from service.domain.lookups import NotLookedUp
from service.engine.batch_draws import draw_many
from service.errors import ExperimentNotRunning, IdempotencyKeyReused, UnitRequired
from service.storage.queries import stored_assignments, stored_experiments, stored_history

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.commands.idempotency import Once
    from service.application.live.reader import WritingReader
    from service.domain.callers import Access, Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger
    from service.storage.database import Connection


# Of the keys that asks keep besides those that are kept with their draws.
_ROUTE = "assignments"
# What is left of the note of an answer whose unit was forgotten.
FORGOTTEN = b"forgotten"


class FirstAnswer(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The note of an answer to an ask, from which it can be told again whatever happened since."""

    arm: int
    version: int
    """Of the experiment when it was given: the arm had the value of that time."""
    reason: str
    created: bool
    draw: int | None = None
    status: AssignmentStatus = "pending"
    reward: float | None = None
    rewarded_at: int | None = None


_read_note = msgspec.json.Decoder(FirstAnswer).decode


class AskAnswer(msgspec.Struct, frozen=True, gc=False):
    """An arm for the caller, with the assignment behind it (none once the experiment is concluded)."""

    experiment: str
    arm: Arm
    unit: str | None
    reason: str
    assignment: Assignment | None
    created: bool
    """Was this a new draw?"""
    replayed: bool = False
    first: FirstAnswer | None = None
    """What an answer that is given again was, if its key was not kept with its draw: the rest of it is looked up."""


class Ask(msgspec.Struct, frozen=True, gc=False):
    """One ask."""

    unit: str | None
    idempotency_key: str | None = None
    weight: ClassVar[int] = 1
    scope: ClassVar[Scope] = "assign"

    @property
    def by_unit(self) -> bool:
        """It says who asks."""
        return self.unit is not None

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """What this key was used for, the assignment of this unit."""
        if self.idempotency_key is not None:
            if ledger.always_draws:
                lookups.new_ask_keys.add(self.idempotency_key)
            else:
                lookups.ask_keys.add(self.idempotency_key)
                lookups.reply_keys.add((_ROUTE, self.idempotency_key))
        if self.unit is not None and ledger.experiment.sticky:
            lookups.units.add(self.unit)

    def apply(self, ledger: Ledger, now: int) -> AskAnswer:
        """The first answer to the key, the concluded arm, the unit's own assignment, or a new draw."""
        if self.idempotency_key is not None:
            first = ledger.seen.by_key.get(self.idempotency_key)
            if first is not None:
                return _replayed(ledger, ledger.seen.assignments[first], self.unit)
        if ledger.always_draws:
            return _fresh(ledger, ledger.draw(self.unit, self.idempotency_key, now))
        return self._apply_where_not_every_ask_draws(ledger, now)

    def _apply_where_not_every_ask_draws(self, ledger: Ledger, now: int) -> AskAnswer:
        """Here every key is kept by a note, which a draw's own key is kept besides: so one key has one answer, drawn or not."""
        key = self.idempotency_key
        if key is not None:
            stored = ledger.seen.replies.get((_ROUTE, key))
            if stored is not None:
                return _noted(ledger, stored, self.unit)
            if key not in ledger.seen.ask_keys:
                raise NotLookedUp  # an earlier request of this very group paused or concluded the experiment
        answer = _without_draw(ledger, self.unit) or _fresh(ledger, ledger.draw(self.unit, key, now))
        if key is not None:
            note = NOTE + msgspec.json.encode(_first_answer(ledger, answer))
            ledger.keep_reply(StoredReply(_ROUTE, key, hash_of(self.unit), answer.created, note, now))
        return answer


class AskMany(msgspec.Struct, frozen=True, gc=False):
    """Several asks, all or nothing."""

    units: Sequence[str | None]
    by_count: bool
    scope: ClassVar[Scope] = "assign"

    @property
    def by_unit(self) -> bool:
        """It says for each who asks."""
        return not self.by_count and None not in self.units

    @property
    def weight(self) -> int:
        """As many requests as it has units."""
        return len(self.units)

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """The assignments of these units."""
        if ledger.experiment.sticky:
            lookups.units.update(unit for unit in self.units if unit is not None)

    def apply(self, ledger: Ledger, now: int) -> list[AskAnswer]:
        """One answer per unit, in order; where sticky, repeated units share one."""
        if self.by_count and ledger.experiment.sticky:
            raise UnitRequired("This experiment is sticky: give `units`, not `count`.")
        if ledger.always_draws:
            key, arms = ledger.experiment.key, ledger.arms
            drawn = draw_many(ledger, self.units, now)
            return [AskAnswer(key, arms[one.arm], one.unit, one.reason, one, True) for one in drawn]
        # The first ask refuses where any would: status and stickiness are the same for all of them.
        return [Ask(unit).apply(ledger, now) for unit in self.units]


def _without_draw(ledger: Ledger, unit: str | None) -> AskAnswer | None:
    experiment = ledger.experiment
    if experiment.status == "concluded" and experiment.concluded_arm is not None:
        served = ledger.arms[experiment.concluded_arm]
        return AskAnswer(experiment.key, served, unit, "concluded", None, created=False)
    if experiment.status != "running":
        raise ExperimentNotRunning(f"Experiment {experiment.key!r} is {experiment.status}; only a running one is asked.")
    if not experiment.sticky:
        return None
    if unit is None:
        raise UnitRequired("This experiment is sticky: `unit` is required.")
    own = ledger.seen.by_unit.get(unit)
    if own is None:
        return None
    assignment = ledger.seen.assignments[own]
    arm = ledger.arms[assignment.arm]
    if not arm.active:
        return None
    return AskAnswer(experiment.key, arm, unit, "sticky", assignment, created=False)


def _fresh(ledger: Ledger, assignment: Assignment) -> AskAnswer:
    arm = ledger.arms[assignment.arm]
    return AskAnswer(ledger.experiment.key, arm, assignment.unit, assignment.reason, assignment, created=True)


def hash_of(unit: str | None) -> str:
    """The fingerprint of an ask's body, which is its unit."""
    return hashlib.sha256(msgspec.json.encode(unit)).hexdigest()


def _first_answer(ledger: Ledger, answer: AskAnswer) -> FirstAnswer:
    arm, version, assignment = answer.arm.position, ledger.version, answer.assignment
    if assignment is None:
        return FirstAnswer(arm, version, answer.reason, answer.created)
    state = assignment.state
    return FirstAnswer(
        arm, version, answer.reason, answer.created, assignment.draw, state.status, state.reward, assignment.rewarded_at
    )


def _noted(ledger: Ledger, stored: StoredReply, unit: str | None) -> AskAnswer:
    """The answer that was noted, as far as the ledger knows it."""
    if stored.body_hash != hash_of(unit):
        raise IdempotencyKeyReused("This Idempotency-Key was used before with another body.")
    first = _read_note(stored.body.removeprefix(NOTE))
    arm = ledger.arms[first.arm]
    return AskAnswer(ledger.experiment.key, arm, unit, first.reason, None, first.created, replayed=True, first=first)


def _replayed(ledger: Ledger, assignment: Assignment, unit: str | None) -> AskAnswer:
    """The answer as it was first given: pending, whatever became of it since."""
    if assignment.unit != unit:
        raise IdempotencyKeyReused("This Idempotency-Key was used before with another body.")
    return structs.replace(_fresh(ledger, _when_drawn(assignment)), replayed=True)


async def ask(context: WritingReader, access: Access, unit: str | None, idempotency_key: str | None) -> AskAnswer:
    """One ask, answered when its draw is durable."""
    answer = await context.writer.submit(access, Ask(unit, idempotency_key))
    return await as_first_given(context, answer) if answer.replayed else answer


async def ask_many(
    context: WritingReader,
    access: Access,
    units: Sequence[str | None],
    once: Once[list[AskAnswer]],
    *,
    by_count: bool,
) -> Rendered:
    """Many asks in one transaction."""
    rendered = await context.writer.submit(access, OnceCommand(once, AskMany(units, by_count)))
    if rendered.note is None:
        return rendered
    return Rendered(rendered.created, once.render(await _noted_answers(context, access.key, rendered.note)), replayed=True)


def creates(answers: list[AskAnswer]) -> bool:
    """Was anything drawn for a batch?"""
    return any(answer.created for answer in answers)


def note_of(answers: list[AskAnswer]) -> bytes | None:
    """Many new draws in a row, noted by their numbers; None where some unit got an older assignment."""
    first = answers[0].assignment
    if first is None or not all(answer.created for answer in answers):
        return None
    return b"%sdraws %d %d" % (NOTE, first.draw, len(answers))


def named_by_note(note: bytes) -> tuple[list[int], list[int]]:
    """The positions of arms and the draws that a stored note names; ValueError if it is none."""
    words = note.removeprefix(NOTE).split()
    if words == [FORGOTTEN]:
        return [], []
    if words[:1] == [b"draws"] and len(words) == len((b"draws", b"first", b"count")):
        first, count = int(words[1]), int(words[2])
        return [], [first, first + count - 1]
    told = _read_note(note.removeprefix(NOTE))
    return [told.arm], [] if told.draw is None else [told.draw]


async def _noted_answers(context: WritingReader, key: str, note: bytes) -> list[AskAnswer]:
    """The answers to a batch as they were first given."""
    first, count = (int(number) for number in note.split()[1:])
    async with context.database.reading() as connection:
        progress, arms = await stored_experiments.experiment_by_key(connection, key)
        drawn = await stored_assignments.assignments_from(connection, progress.experiment.id, first, count)
        used = {assignment.arm for assignment in drawn}
        shown = {
            position: await _as_it_was(connection, progress.experiment.id, arms[position].arm, drawn[0].sequence)
            for position in used
        }
    return [AskAnswer(key, shown[one.arm], one.unit, one.reason, _when_drawn(one), created=True, replayed=True) for one in drawn]


async def as_first_given(context: WritingReader, answer: AskAnswer) -> AskAnswer:
    """An answer that is given again, with its assignment and the value of its arm as they were when it was first given."""
    first, assignment = answer.first, answer.assignment
    async with context.database.reading() as connection:
        experiment_id = await stored_experiments.experiment_id_of(connection, answer.experiment)
        if first is not None and first.draw is not None:
            drawn = await stored_assignments.assignment_by_draw(connection, experiment_id, first.draw)
            assignment = _in_state(cast("Assignment", drawn), first)
        version = first.version if first is not None else cast("Assignment", assignment).sequence
        arm = await _as_it_was(connection, experiment_id, answer.arm, version)
    return structs.replace(answer, arm=arm, assignment=assignment)


async def _as_it_was(connection: Connection, experiment_id: int, arm: Arm, sequence: int) -> Arm:
    """The arm with its value of that time: the oldest later change knows what it replaced."""
    for change in await stored_history.arm_changes_after(connection, experiment_id, arm.position, sequence):
        before = cast("dict[str, Any]", (change.details or {}).get("before", {}))
        if "value" in before:
            return replace(arm, value=before["value"])
    return arm


def _in_state(assignment: Assignment, first: FirstAnswer) -> Assignment:
    """As the answer told of it, whatever became of it since."""
    state = AssignmentState(first.status, first.reward, assignment.state.closed)
    return structs.replace(assignment, state=state, rewarded_at=first.rewarded_at)


def _when_drawn(assignment: Assignment) -> Assignment:
    """Pending, whatever became of it since."""
    return structs.replace(assignment, state=state_when_drawn(assignment.expiry_reward), rewarded_at=None)
