"""Asks: which arm to show, for one unit or for many."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
from msgspec import structs

from service.application.idempotency import NOTE, OnceCommand, Rendered
from service.domain import Arm, Assignment, AssignmentState
from service.errors import ExperimentNotRunning, IdempotencyKeyReused, UnitRequired
from service.storage import reading
from service.storage.lookups import NotLookedUp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.context import Context
    from service.application.idempotency import Once
    from service.application.ledger import Ledger
    from service.storage.database import Connection
    from service.storage.lookups import Wanted


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An arm for the caller, with the assignment behind it (none once the experiment is concluded)."""

    experiment: str
    arm: Arm
    unit: str | None
    reason: str
    assignment: Assignment | None
    created: bool
    """Was this a new draw?"""
    replayed: bool = False


class Ask(msgspec.Struct, frozen=True, gc=False):
    """One ask."""

    unit: str | None
    idempotency_key: str | None = None
    weight: ClassVar[int] = 1

    def want(self, wanted: Wanted, ledger: Ledger) -> None:
        """The draw of this key, the assignment of this unit."""
        if self.idempotency_key is not None:
            (wanted.new_ask_keys if ledger.always_draws else wanted.ask_keys).add(self.idempotency_key)
        if self.unit is not None and ledger.experiment.sticky:
            wanted.units.add(self.unit)

    def apply(self, ledger: Ledger, now: int) -> Answer:
        """The first answer to the key, the concluded arm, the unit's own assignment, or a new draw."""
        if self.idempotency_key is not None:
            first = ledger.found.by_key.get(self.idempotency_key)
            if first is not None:
                return _replayed(ledger, ledger.found.assignments[first], self.unit)
            if not ledger.always_draws and self.idempotency_key not in ledger.found.ask_keys:
                raise NotLookedUp  # an earlier request of this very group paused or concluded the experiment
        settled = None if ledger.always_draws else _without_draw(ledger, self.unit)
        return settled or _fresh(ledger, ledger.draw(self.unit, self.idempotency_key, now))


class AskMany(msgspec.Struct, frozen=True, gc=False):
    """Several asks, all or nothing."""

    units: Sequence[str | None]
    by_count: bool

    @property
    def weight(self) -> int:
        """As many requests as it has units."""
        return len(self.units)

    def want(self, wanted: Wanted, ledger: Ledger) -> None:
        """The assignments of these units."""
        if ledger.experiment.sticky:
            wanted.units.update(unit for unit in self.units if unit is not None)

    def apply(self, ledger: Ledger, now: int) -> list[Answer]:
        """One answer per unit, in order; where sticky, repeated units share one."""
        if self.by_count and ledger.experiment.sticky:
            raise UnitRequired("This experiment is sticky: give `units`, not `count`.")
        if ledger.always_draws:
            return [_fresh(ledger, ledger.draw(unit, None, now)) for unit in self.units]
        # The first ask refuses where any would: status and stickiness are the same for all of them.
        return [Ask(unit).apply(ledger, now) for unit in self.units]


def _without_draw(ledger: Ledger, unit: str | None) -> Answer | None:
    experiment = ledger.experiment
    if experiment.status == "concluded" and experiment.concluded_arm is not None:
        served = ledger.arms[experiment.concluded_arm]
        return Answer(experiment.key, served, unit, "concluded", None, created=False)
    if experiment.status != "running":
        raise ExperimentNotRunning(f"Experiment {experiment.key!r} is {experiment.status}; only a running one is asked.")
    if not experiment.sticky:
        return None
    if unit is None:
        raise UnitRequired("This experiment is sticky: `unit` is required.")
    own = ledger.found.by_unit.get(unit)
    if own is None:
        return None
    assignment = ledger.found.assignments[own]
    arm = ledger.arms[assignment.arm]
    if not arm.active:
        return None
    return Answer(experiment.key, arm, unit, "sticky", assignment, created=False)


def _fresh(ledger: Ledger, assignment: Assignment) -> Answer:
    arm = ledger.arms[assignment.arm]
    return Answer(ledger.experiment.key, arm, assignment.unit, assignment.reason, assignment, created=True)


def _replayed(ledger: Ledger, assignment: Assignment, unit: str | None) -> Answer:
    """The answer as it was first given: pending, whatever became of it since."""
    if assignment.unit != unit:
        raise IdempotencyKeyReused("This Idempotency-Key was used before with another body.")
    return structs.replace(_fresh(ledger, _when_drawn(assignment)), replayed=True)


async def ask(context: Context, key: str, unit: str | None, idempotency_key: str | None) -> Answer:
    """One ask, answered when its draw is durable."""
    answer = await context.writer.submit(key, Ask(unit, idempotency_key))
    return await as_first_given(context, answer) if answer.replayed else answer


async def ask_many(
    context: Context, key: str, units: Sequence[str | None], once: Once[list[Answer]], *, by_count: bool
) -> Rendered:
    """Many asks in one transaction."""
    rendered = await context.writer.submit(key, OnceCommand(once, AskMany(units, by_count)))
    if rendered.note is None:
        return rendered
    return Rendered(rendered.status, once.render(await _noted_answers(context, key, rendered.note)), replayed=True)


def note_of(answers: list[Answer]) -> bytes | None:
    """Many new draws in a row, noted by their numbers; None where some unit got an older assignment."""
    first = answers[0].assignment
    if first is None or not all(answer.created for answer in answers):
        return None
    return b"%sdraws %d %d" % (NOTE, first.draw, len(answers))


async def _noted_answers(context: Context, key: str, note: bytes) -> list[Answer]:
    """The answers to a batch as they were first given."""
    first, count = (int(number) for number in note.split()[1:])
    async with context.database.reading() as connection:
        progress, arms = await reading.experiment_by_key(connection, key)
        drawn = await reading.assignments_from(connection, progress.experiment.id, first, count)
        used = {assignment.arm for assignment in drawn}
        shown = {
            position: await _as_it_was(connection, progress.experiment.id, arms[position].arm, drawn[0].sequence)
            for position in used
        }
    return [Answer(key, shown[one.arm], one.unit, one.reason, _when_drawn(one), created=True, replayed=True) for one in drawn]


async def as_first_given(context: Context, answer: Answer) -> Answer:
    """An answer with its arm as it was when the draw was first answered."""
    assignment = cast("Assignment", answer.assignment)
    async with context.database.reading() as connection:
        experiment_id = await reading.experiment_id_of(connection, answer.experiment)
        arm = await _as_it_was(connection, experiment_id, answer.arm, assignment.sequence)
    return structs.replace(answer, arm=arm)


async def _as_it_was(connection: Connection, experiment_id: int, arm: Arm, sequence: int) -> Arm:
    """The arm with its value of that time: the oldest later change knows what it replaced."""
    for change in await reading.arm_changes_after(connection, experiment_id, arm.position, sequence):
        before = cast("dict[str, Any]", (change.details or {}).get("before", {}))
        if "value" in before:
            return replace(arm, value=before["value"])
    return arm


def _when_drawn(assignment: Assignment) -> Assignment:
    """Pending, whatever became of it since."""
    pending = AssignmentState("pending", None, closed=assignment.expiry_reward is None)
    return structs.replace(assignment, state=pending, rewarded_at=None)
