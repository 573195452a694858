"""What may happen to an assignment, and what each step makes of it: tells, expiry, replay and the stored rows follow this table.

    pending ──reward──> rewarded ──correction──> rewarded
       │                 ^    │
     expiry            reward └──void──> voided ──correction──> rewarded
       v                 │
    expired ─────────────┘          (void works on any status; maturity keeps a reward and closes its window)

What an assignment contributes to its arm follows from its state alone (service/domain/statistics.py), so a step needs no rule of
its own for counts and moments: the old state's contribution goes, the new one's comes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from service.domain.assignment import Assignment, AssignmentState, AssignmentStatus

StepKind: TypeAlias = Literal["reward", "correction", "expiry", "maturity", "void"]


class StepRule(NamedTuple):
    """What one kind of step does."""

    allowed_from: frozenset[AssignmentStatus]
    leads_to: AssignmentStatus
    told: bool
    """A caller told the reward, so the assignment says when."""
    closes: bool
    """The window of a numeric expiry is over: the reward counts in the intervals."""


STEPS: dict[StepKind, StepRule] = {
    "reward": StepRule(frozenset({"pending", "expired"}), "rewarded", told=True, closes=False),
    "correction": StepRule(frozenset({"rewarded", "voided"}), "rewarded", told=True, closes=False),
    "expiry": StepRule(frozenset({"pending"}), "expired", told=False, closes=True),
    "maturity": StepRule(frozenset({"rewarded"}), "rewarded", told=False, closes=True),
    "void": StepRule(frozenset({"pending", "rewarded", "expired"}), "voided", told=False, closes=False),
}


class IllegalStep(Exception):  # noqa: N818 - the caller knows the state: reaching this is a defect, or a forged history
    """A step that cannot lead on from where the assignment is."""


def after_step(assignment: Assignment, kind: StepKind, reward: float | None, at: int) -> Assignment:
    """The assignment after a step of this kind that leaves it with this reward."""
    rule, before = STEPS[kind], assignment.state
    if before.status not in rule.allowed_from:
        raise IllegalStep(f"a {kind} cannot lead from {before.status} to {rule.leads_to}")
    state = AssignmentState(rule.leads_to, reward, before.closed or rule.closes)
    if rule.told:
        rewarded_at: int | None = at
    else:
        rewarded_at = assignment.rewarded_at if rule.leads_to == "rewarded" else None
    return replace(assignment, state=state, rewarded_at=rewarded_at)


def step_of_tell(status: AssignmentStatus) -> StepKind:
    """How a reward that a caller tells counts: what was there before makes it a correction."""
    return "reward" if status in STEPS["reward"].allowed_from else "correction"


def step_when_due(state: AssignmentState, expiry_reward: float | None) -> tuple[StepKind, float | None]:
    """What the sweep does to an assignment whose window has closed, and the reward that it leaves."""
    return ("expiry", expiry_reward) if state.status == "pending" else ("maturity", state.reward)


def state_when_drawn(expiry_reward: float | None) -> AssignmentState:
    """Pending. Without a numeric expiry there is no window that a reward would have to wait for."""
    return PENDING if expiry_reward is None else PENDING_IN_WINDOW


PENDING = AssignmentState("pending", None, closed=True)
PENDING_IN_WINDOW = AssignmentState("pending", None, closed=False)
