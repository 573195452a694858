"""The state machine of an assignment: which step leads where, and what it leaves."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from msgspec.structs import replace

from service.domain import STEPS, Assignment, AssignmentState, IllegalStep, StepKind, after_step, state_when_drawn
from service.domain.assignment import AssignmentStatus
from service.domain.events import TRAITS
from service.domain.transitions import step_of_tell, step_when_due

_STATUSES: tuple[AssignmentStatus, ...] = get_args(AssignmentStatus)
_KINDS: tuple[StepKind, ...] = get_args(StepKind)


def _assignment(status: AssignmentStatus, *, closed: bool = True, reward: float | None = None) -> Assignment:
    pending = Assignment(1, 2, 3, 0, None, "track", 1, 10, 20, None, state_when_drawn(None), rewarded_at=15)
    return replace(pending, state=AssignmentState(status, reward, closed))


@pytest.mark.parametrize(("kind", "status"), list(product(_KINDS, _STATUSES)))
def test_a_step_leads_on_from_where_it_may_and_from_nowhere_else(kind: StepKind, status: AssignmentStatus) -> None:
    """Every pair of a step and a status."""
    assignment = _assignment(status)
    if status in STEPS[kind].allowed_from:
        assert after_step(assignment, kind, 1.0, 30).state.status == STEPS[kind].leads_to
    else:
        with pytest.raises(IllegalStep):
            after_step(assignment, kind, 1.0, 30)


def test_what_a_caller_tells_is_dated_and_what_the_sweep_does_is_not() -> None:
    """A maturity keeps the time of the reward, an expiry and a void have none."""
    assert after_step(_assignment("pending"), "reward", 1.0, 30).rewarded_at == 30
    assert after_step(_assignment("voided"), "correction", 1.0, 30).rewarded_at == 30
    assert after_step(_assignment("rewarded", closed=False), "maturity", 1.0, 30).rewarded_at == 15
    assert after_step(_assignment("pending"), "expiry", None, 30).rewarded_at is None
    assert after_step(_assignment("rewarded"), "void", None, 30).rewarded_at is None


def test_a_window_closes_by_expiry_or_maturity_and_stays_closed() -> None:
    """A reward that comes within it waits; one that comes after it counts at once."""
    in_window = _assignment("pending", closed=False)
    rewarded = after_step(in_window, "reward", 1.0, 30)
    assert not rewarded.state.closed
    assert rewarded.due_at == 20
    matured = after_step(rewarded, "maturity", 1.0, 31)
    assert (matured.state.closed, matured.due_at) == (True, None)
    expired = after_step(in_window, "expiry", 0.0, 31)
    assert after_step(expired, "reward", 1.0, 32).state.closed


def test_how_a_tell_and_the_sweep_name_their_steps() -> None:
    """What was there before decides."""
    assert [step_of_tell(status) for status in _STATUSES] == ["reward", "correction", "reward", "correction"]
    assert step_when_due(AssignmentState("pending", None, closed=False), 0.5) == ("expiry", 0.5)
    assert step_when_due(AssignmentState("rewarded", 1.0, closed=False), 0.5) == ("maturity", 1.0)


def test_every_step_is_an_event_of_that_family() -> None:
    """The history and the state machine know the same steps."""
    assert {kind for kind, traits in TRAITS.items() if traits.family == "step"} == set(STEPS)
