"""Tells: what happened. Rewards of assignments, corrections, voids, and observations that came without an ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias, TypeVar

import msgspec

from service.application.commands.idempotency import OnceCommand
from service.domain import TAKES_REWARDS, Assignment, draw_behind, step_of_tell
from service.domain.limits import LARGEST_REWARD, LONGEST_NAME, LONGEST_OBSERVATION_ID, LONGEST_UNIT
from service.errors import (
    ArmNotFound,
    AssignmentNotFound,
    BestArmError,
    ExperimentNotRunning,
    ExperimentPruned,
    InvalidValue,
    NotFound,
    RewardConflict,
    UnitNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.application.commands.idempotency import Once, Rendered
    from service.application.live.reader import WritingReader
    from service.domain import Arm, ObservationRecord
    from service.domain.callers import Access, Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger

Reward: TypeAlias = Annotated[float, msgspec.Meta(ge=-LARGEST_REWARD, le=LARGEST_REWARD)]
Item = TypeVar("Item")
Verb: TypeAlias = Literal["reward", "correct", "void"]
Outcome: TypeAlias = Literal["recorded", "duplicate", "conflict", "not_found", "invalid"]


class TellAnswer(msgspec.Struct, frozen=True, gc=False):
    """An assignment after a tell, with its arm."""

    experiment: str
    arm: Arm
    assignment: Assignment
    replayed: ClassVar[bool] = False
    """The same tell again is answered with the assignment as it is now."""


class TellResult(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What became of one item of a batch; what does not apply is left out of the answer."""

    status: Outcome
    detail: str | None = None
    assignment: str | None = None


class Tell(msgspec.Struct, frozen=True, gc=False):
    """Reward (POST), correct (PUT) or void (DELETE) one assignment."""

    assignment_id: str
    verb: Verb
    reward: float | None = None
    weight: ClassVar[int] = 1
    scope: ClassVar[Scope] = "reward"
    by_unit: ClassVar[bool] = False

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """The assignment."""
        draw = draw_behind(self.assignment_id)
        if draw is not None and draw not in ledger.recent_draws:
            lookups.draws.add(draw)

    def apply(self, ledger: Ledger, now: int) -> TellAnswer:
        """The assignment as it is afterwards; the same again changes nothing."""
        require_open(ledger)
        return _answer_of(ledger, find_assignment(ledger, self.assignment_id), self.verb, self.reward, now)


class TellUnit(msgspec.Struct, frozen=True, gc=False):
    """The same for the assignment of a unit, by callers that know no id."""

    unit: str
    verb: Verb
    reward: float | None = None
    weight: ClassVar[int] = 1
    scope: ClassVar[Scope] = "reward"

    @property
    def by_unit(self) -> bool:
        """A page may tell what happened; it may not take back what others have told, for any unit whose name it knows."""
        return self.verb == "reward"

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """The unit's assignment."""
        if ledger.experiment.sticky:
            lookups.units.add(self.unit)

    def apply(self, ledger: Ledger, now: int) -> TellAnswer:
        """The assignment as it is afterwards; the same again changes nothing."""
        require_open(ledger)
        return _answer_of(ledger, _assignment_of_unit(ledger, self.unit), self.verb, self.reward, now)


class RewardItem(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, kw_only=True):
    """One reward of a batch, by assignment or by unit."""

    assignment: Annotated[str, msgspec.Meta(max_length=LONGEST_UNIT)] | None = None
    unit: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_UNIT)] | None = None
    reward: Reward

    def __post_init__(self) -> None:
        """Require one of the two names of the assignment."""
        if (self.assignment is None) == (self.unit is None):
            raise ValueError("Give either `assignment` or `unit`.")


class TellMany(msgspec.Struct, frozen=True, gc=False):
    """Many rewards; the good items count whatever the others are."""

    items: Sequence[RewardItem | TellResult]
    """A result among them stands for an item that could not even be read."""
    scope: ClassVar[Scope] = "reward"

    @property
    def by_unit(self) -> bool:
        """Every item that could be read names a unit."""
        return all(isinstance(item, TellResult) or item.unit is not None for item in self.items)

    @property
    def weight(self) -> int:
        """As many requests as it has items."""
        return len(self.items)

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """All assignments and units named."""
        named = {draw_behind(item.assignment) for item in self.items if item.assignment is not None}
        lookups.draws.update(draw for draw in named.difference(ledger.recent_draws) if draw is not None)
        if ledger.experiment.sticky:
            by_unit = (item for item in self.items if isinstance(item, RewardItem) and item.assignment is None)
            lookups.units.update(item.unit for item in by_unit if item.unit is not None)

    def apply(self, ledger: Ledger, now: int) -> list[TellResult]:
        """One result per item, in order."""
        require_open(ledger)
        return _outcomes(self.items, self._reward_item, ledger, now)

    def _reward_item(self, ledger: Ledger, item: RewardItem, now: int) -> TellResult:
        name = item.assignment
        assignment = _assignment_of_unit(ledger, item.unit or "") if name is None else find_assignment(ledger, name)
        told, changed = _reward(ledger, assignment, valid_reward(ledger, item.reward), now, correct=False)
        return TellResult("recorded" if changed else "duplicate", None, name or told.id)


class ObservationItem(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A reward of an arm that the caller chose."""

    arm: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    reward: Reward
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_OBSERVATION_ID)] | None = None


class Observe(msgspec.Struct, frozen=True, gc=False):
    """Tell without ask: imports, and callers that choose their own arm."""

    items: Sequence[ObservationItem | TellResult]
    scope: ClassVar[Scope] = "reward"
    by_unit: ClassVar[bool] = False

    @property
    def weight(self) -> int:
        """As many requests as it has items."""
        return len(self.items)

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """The ids that may have been counted before."""
        named = (item.id for item in self.items if isinstance(item, ObservationItem))
        lookups.observation_ids.update(name for name in named if name is not None)

    def apply(self, ledger: Ledger, now: int) -> list[TellResult]:
        """One result per item, in order."""
        require_open(ledger)
        return _outcomes(self.items, self._observe, ledger, now)

    def _observe(self, ledger: Ledger, item: ObservationItem, now: int) -> TellResult:
        position = ledger.position_of(item.arm)
        if position is None:
            raise ArmNotFound(ledger.experiment.key, item.arm)
        reward = valid_reward(ledger, item.reward)
        known = ledger.seen.observations.get(item.id) if item.id is not None else None
        if known is None:
            ledger.observe(position, reward, item.id, now)
            return TellResult("recorded")
        return outcome_of_known(known, position, reward)


def outcome_of_known(known: ObservationRecord, position: int, reward: float) -> TellResult:
    """What becomes of an observation whose id was told before."""
    if known.status == "voided":
        raise RewardConflict(f"Observation {known.id!r} was voided; PUT brings it back.")
    if (known.arm, known.reward) == (position, reward):
        return TellResult("duplicate")
    raise RewardConflict(f"Observation {known.id!r} was told before with another arm or reward.")


def find_assignment(ledger: Ledger, assignment_id: str) -> Assignment:
    """The assignment behind an id, token and all."""
    draw = draw_behind(assignment_id)
    assignment = None if draw is None else ledger.seen.assignments.get(draw) or ledger.recent_draws.get(draw)
    if assignment is None or assignment.id != assignment_id:
        raise AssignmentNotFound(ledger.experiment.key, assignment_id)
    return assignment


def _assignment_of_unit(ledger: Ledger, unit: str) -> Assignment:
    """The one assignment of a unit."""
    if not ledger.experiment.sticky:
        raise InvalidValue("/unit", "Rewards by unit need a sticky experiment.")
    if unit not in ledger.seen.by_unit:
        raise UnitNotFound(ledger.experiment.key, unit)
    return ledger.seen.assignments[ledger.seen.by_unit[unit]]


def require_open(ledger: Ledger) -> None:
    """Draft, archived and pruned experiments take no rewards."""
    experiment = ledger.experiment
    if experiment.status not in TAKES_REWARDS:
        raise ExperimentNotRunning(f"Experiment {experiment.key!r} is {experiment.status} and takes no rewards.")
    if experiment.pruned_at is not None:
        raise ExperimentPruned(experiment.key)


def valid_reward(ledger: Ledger, reward: float | None) -> float:
    """The reward, if it is one that the experiment takes."""
    if reward is None:
        raise InvalidValue("/reward", "A reward is required.")
    objection = ledger.experiment.reward.objection_to(reward)
    if objection:
        raise InvalidValue("/reward", objection)
    return float(reward) + 0.0  # -0.0 becomes 0.0, so that equal rewards are equal to the bit


def _answer_of(ledger: Ledger, assignment: Assignment, verb: Verb, reward: float | None, now: int) -> TellAnswer:
    """The assignment as it is after one tell."""
    if verb == "void":
        told = _void(ledger, assignment, now)
    else:
        told, _ = _reward(ledger, assignment, valid_reward(ledger, reward), now, correct=verb == "correct")
    return TellAnswer(ledger.experiment.key, ledger.arms[told.arm], told)


def _reward(ledger: Ledger, assignment: Assignment, reward: float, now: int, *, correct: bool) -> tuple[Assignment, bool]:
    """The assignment with this reward, and whether anything changed."""
    status = assignment.state.status
    if status == "rewarded" and assignment.state.reward == reward:
        return assignment, False
    if not correct and status == "rewarded":
        raise RewardConflict(f"Assignment {assignment.id} already has the reward {assignment.state.reward:g}.")
    if not correct and status == "voided":
        raise RewardConflict(f"Assignment {assignment.id} was voided; PUT brings it back.")
    return ledger.step(assignment, step_of_tell(status), reward, now), True


def _void(ledger: Ledger, assignment: Assignment, now: int) -> Assignment:
    if assignment.state.status == "voided":
        return assignment
    return ledger.step(assignment, "void", None, now)


def _outcomes(
    items: Sequence[Item | TellResult], attempt: Callable[[Ledger, Item, int], TellResult], ledger: Ledger, now: int
) -> list[TellResult]:
    """Each item's own result, whatever it was refused for."""
    results = []
    for item in items:
        try:
            results.append(item if isinstance(item, TellResult) else attempt(ledger, item, now))
        except RewardConflict as refused:
            results.append(TellResult("conflict", str(refused)))
        except NotFound as refused:
            results.append(TellResult("not_found", str(refused)))
        except BestArmError as refused:
            results.append(TellResult("invalid", str(refused)))
    return results


async def tell(context: WritingReader, access: Access, command: Tell | TellUnit) -> TellAnswer:
    """One reward, correction or void, answered when it is durable."""
    return await context.writer.submit(access, command)


async def tell_many(
    context: WritingReader, access: Access, command: TellMany | Observe, once: Once[list[TellResult]]
) -> Rendered:
    """A batch of rewards or observations in one transaction."""
    return await context.writer.submit(access, OnceCommand(once, command))
