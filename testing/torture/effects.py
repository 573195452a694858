"""What calls claim: which draws and rewards were acknowledged, and what may have become of each assignment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from testing.torture.calls import Call

Outcome = tuple[str, float | None]
"""The status of an assignment, and its reward."""
PENDING: Outcome = ("pending", None)
EXPIRED: Outcome = ("expired", None)
"""What becomes of it in an experiment whose silent draws are dropped."""
_STEPS = {"tell": "rewarded", "correct": "rewarded", "void": "voided"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """An assignment as a client was told of it."""

    id: str
    arm: str
    draw: int
    unit: str | None
    call: Call


@dataclass(slots=True)
class Operation:
    """All attempts at the same thing, in order."""

    attempts: list[Call] = field(default_factory=list)

    @property
    def first(self) -> Call:
        """The first attempt."""
        return self.attempts[0]

    @property
    def acknowledged(self) -> list[Call]:
        """Those that were answered with success."""
        return [call for call in self.attempts if call.is_acknowledged]

    @property
    def may_have_effect(self) -> bool:
        """Was it acknowledged, or left open?"""
        return any(call.is_acknowledged or not call.is_definite for call in self.attempts)


def operations(calls: Iterable[Call], *kinds: str) -> dict[str, Operation]:
    """The operations of these kinds by their names."""
    found: dict[str, Operation] = defaultdict(Operation)
    for call in calls:
        if call.kind in kinds:
            found[call.operation].attempts.append(call)
    return found


def drawn(calls: Iterable[Call]) -> Iterator[Drawn]:
    """Every assignment of every acknowledged ask. A concluded experiment answers without any."""
    for call in calls:
        if call.kind in {"ask", "ask_many"} and call.is_acknowledged:
            units = call.sent.get("units", [call.sent.get("unit")])
            answers = call.answer if call.kind == "ask_many" else [call.answer]
            for one, unit in zip(answers, units, strict=True):
                if one["id"] is not None:
                    yield Drawn(one["id"], one["arm"], one["draw"], unit, call)


def possible_outcomes(calls: Sequence[Call]) -> dict[str, set[Outcome]]:
    """What each assignment that was told something may be in the end.

    Each has one client at a time, which goes on to the next step when the last one is definite: so there is one outcome, and a
    second one only where the last step was left open.
    """
    outcomes: dict[str, set[Outcome]] = {}
    for operation in operations(calls, *_STEPS).values():
        step = operation.first
        name = step.sent["assignment"]
        after: Outcome = (_STEPS[step.kind], step.sent.get("reward"))
        before = outcomes.get(name, {PENDING})
        if step.kind == "void":
            landed: set[Outcome] = {("voided", None)}
        else:
            landed = {after}
        if operation.acknowledged:
            outcomes[name] = landed
        elif operation.may_have_effect:
            outcomes[name] = before | landed
        else:
            outcomes[name] = before
    return outcomes
