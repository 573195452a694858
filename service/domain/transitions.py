"""What may happen to an assignment, and what each step makes of it: tells, expiry, replay and the stored rows follow this table.

    pending ──reward──> rewarded ──correction──> rewarded
       │                 ^    │
     expiry            reward └──void──> voided ──correction──> rewarded
       v                 │
    expired ─────────────┘

A void leads from every status but voided itself; a maturity leaves rewarded as it is and closes its window. A named observation
moves between rewarded and voided by the same two rules, correction and void. When the sweep has to look at an assignment again
follows from its state (`due_at` of service/domain/assignment.py).

What an assignment contributes to its arm follows from its state alone (service/domain/statistics.py), so a step needs no rule of
its own for counts and moments: the old state's contribution goes, the new one's comes.
"""

from __future__ import annotations

from dataclasses import replace as replace_record
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from service.domain.assignment import Assignment, AssignmentState, AssignmentStatus

if TYPE_CHECKING:
    from service.domain.changes import ObservationRecord
    from service.domain.events import EventKind

StepKind: TypeAlias = Literal["reward", "correction", "expiry", "maturity", "void"]
RewardRule: TypeAlias = Literal["given", "of expiry", "unchanged", "none"]


class StepRule(NamedTuple):
    """What one kind of step does."""

    allowed_from: frozenset[AssignmentStatus]
    leads_to: AssignmentStatus
    reward: RewardRule
    """The reward that it leaves: one that a caller gives, which is dated; what the expiry states; the one before; none."""
    closes: bool
    """The window of a numeric expiry is over: the reward counts in the intervals."""


STEPS: dict[StepKind, StepRule] = {
    "reward": StepRule(frozenset({"pending", "expired"}), "rewarded", "given", closes=False),
    "correction": StepRule(frozenset({"rewarded", "voided"}), "rewarded", "given", closes=False),
    "expiry": StepRule(frozenset({"pending"}), "expired", "of expiry", closes=True),
    "maturity": StepRule(frozenset({"rewarded"}), "rewarded", "unchanged", closes=True),
    "void": StepRule(frozenset({"pending", "rewarded", "expired"}), "voided", "none", closes=False),
}


_FIRST_REWARD_FROM = STEPS["reward"].allowed_from


class IllegalStep(Exception):  # noqa: N818 - the caller knows the state: reaching this is a defect, or a forged history
    """A step that cannot lead on from where the assignment is, or that cannot leave the reward it is said to leave."""


def after_step(assignment: Assignment, kind: StepKind, reward: float | None, at: int) -> Assignment:
    """The assignment after a step of this kind that leaves it with this reward."""
    rule, before = STEPS[kind], assignment.state
    if before.status not in rule.allowed_from:
        raise IllegalStep(f"a {kind} cannot lead from {before.status} to {rule.leads_to}")
    if rule.reward == "given" and reward is not None:  # most steps: nothing more is asked of them
        rewarded_at: int | None = at
    elif rule.reward == "given" or reward != _reward_left(assignment, rule):
        raise IllegalStep(f"a {kind} cannot leave {reward} as the reward")
    else:
        rewarded_at = assignment.rewarded_at if rule.leads_to == "rewarded" else None
    state = AssignmentState(rule.leads_to, reward, before.closed or rule.closes)
    return replace(assignment, state=state, rewarded_at=rewarded_at)


def _reward_left(assignment: Assignment, rule: StepRule) -> float | None:
    """The reward after a step that nobody gives one for."""
    if rule.reward == "of expiry":
        return assignment.expiry_reward
    return assignment.state.reward if rule.reward == "unchanged" else None


def after_observation_step(known: ObservationRecord, reward: float | None, sequence: int) -> tuple[EventKind, ObservationRecord]:
    """A named observation after a correction, or (None) a void, with this sequence number; and the kind of that event."""
    kind: StepKind = "void" if reward is None else "correction"
    rule = STEPS[kind]
    if known.status not in rule.allowed_from:
        raise IllegalStep(f"a {kind} cannot lead from {known.status} to {rule.leads_to}")
    if reward is None:
        return "observation_void", replace_record(known, status="voided", changed=sequence)
    return "observation_edit", replace_record(known, status="rewarded", reward=reward, changed=sequence)


def step_of_tell(status: AssignmentStatus) -> StepKind:
    """How a reward that a caller tells counts: what was there before makes it a correction."""
    return "reward" if status in _FIRST_REWARD_FROM else "correction"


def step_when_due(state: AssignmentState, expiry_reward: float | None) -> tuple[StepKind, float | None]:
    """What the sweep does to an assignment whose window has closed, and the reward that it leaves."""
    return ("expiry", expiry_reward) if state.status == "pending" else ("maturity", state.reward)


def state_when_drawn(expiry_reward: float | None) -> AssignmentState:
    """Pending. Without a numeric expiry there is no window that a reward would have to wait for."""
    return PENDING if expiry_reward is None else PENDING_IN_WINDOW


PENDING = AssignmentState("pending", None, closed=True)
PENDING_IN_WINDOW = AssignmentState("pending", None, closed=False)
