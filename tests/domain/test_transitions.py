"""The state machine of an assignment: which step leads where, and what it leaves."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from msgspec.structs import replace

from service.domain import (
    STEPS,
    Assignment,
    AssignmentState,
    IllegalStep,
    ObservationRecord,
    StepKind,
    after_observation_step,
    after_step,
    state_when_drawn,
)
from service.domain.assignment import AssignmentStatus
from service.domain.events import TRAITS
from service.domain.transitions import step_of_tell, step_when_due

_STATUSES: tuple[AssignmentStatus, ...] = get_args(AssignmentStatus)
_KINDS: tuple[StepKind, ...] = get_args(StepKind)


# What each step leaves of an assignment whose reward is 1.0 and whose expiry states 0.5.
_LEFT: dict[StepKind, float | None] = {"reward": 0.25, "correction": 0.25, "expiry": 0.5, "maturity": 1.0, "void": None}


def _assignment(status: AssignmentStatus, *, closed: bool = True) -> Assignment:
    reward = {"pending": None, "rewarded": 1.0, "expired": 0.5, "voided": None}[status]
    pending = Assignment(1, 2, 3, 0, None, "track", 1, 10, 20, 0.5, state_when_drawn(0.5), rewarded_at=15)
    return replace(pending, state=AssignmentState(status, reward, closed))


@pytest.mark.parametrize(("kind", "status"), list(product(_KINDS, _STATUSES)))
def test_a_step_leads_on_from_where_it_may_and_from_nowhere_else(kind: StepKind, status: AssignmentStatus) -> None:
    """Every pair of a step and a status."""
    assignment = _assignment(status)
    if status in STEPS[kind].allowed_from:
        assert after_step(assignment, kind, _LEFT[kind], 30).state.status == STEPS[kind].leads_to
    else:
        with pytest.raises(IllegalStep):
            after_step(assignment, kind, _LEFT[kind], 30)


@pytest.mark.parametrize(("kind", "reward"), list(product(_KINDS, [None, 0.25, 0.5, 1.0])))
def test_a_step_leaves_the_reward_that_its_rule_says_and_no_other(kind: StepKind, reward: float | None) -> None:
    """A caller's reward is any but none; an expiry leaves its own, a maturity the one that was there, a void nothing."""
    allowed = reward is not None if kind in ("reward", "correction") else reward == _LEFT[kind]
    for status in STEPS[kind].allowed_from:
        if allowed:
            assert after_step(_assignment(status), kind, reward, 30).state.reward == reward
        else:
            with pytest.raises(IllegalStep, match=f"a {kind} cannot leave {reward}"):
                after_step(_assignment(status), kind, reward, 30)


def test_an_expiry_without_a_stated_reward_leaves_none() -> None:
    """The draw leaves the counts."""
    dropped = replace(_assignment("pending"), expiry_reward=None)
    assert after_step(dropped, "expiry", None, 30).state == AssignmentState("expired", None, closed=True)
    with pytest.raises(IllegalStep):
        after_step(dropped, "expiry", 0.0, 30)


def test_a_named_observation_moves_by_the_rules_of_correction_and_void() -> None:
    """A voided one keeps its last reward in mind, counts nothing, and can be brought back but not voided again."""
    told = ObservationRecord("import-1", 0, 0.75, 4, 1, "rewarded", 4)
    kind, corrected = after_observation_step(told, 0.5, 5)
    assert (kind, corrected.state, corrected.changed) == ("observation_edit", AssignmentState("rewarded", 0.5, closed=True), 5)
    kind, voided = after_observation_step(corrected, None, 6)
    assert (kind, voided.state, voided.changed) == ("observation_void", AssignmentState("voided", None, closed=True), 6)
    assert voided.reward == 0.5
    with pytest.raises(IllegalStep):
        after_observation_step(voided, None, 7)
    assert after_observation_step(voided, 1.0, 7)[1].status == "rewarded"


def test_what_a_caller_tells_is_dated_and_what_the_sweep_does_is_not() -> None:
    """A maturity keeps the time of the reward, an expiry and a void have none."""
    assert after_step(_assignment("pending"), "reward", 1.0, 30).rewarded_at == 30
    assert after_step(_assignment("voided"), "correction", 1.0, 30).rewarded_at == 30
    assert after_step(_assignment("rewarded", closed=False), "maturity", 1.0, 30).rewarded_at == 15
    assert after_step(_assignment("pending"), "expiry", 0.5, 30).rewarded_at is None
    assert after_step(_assignment("rewarded"), "void", None, 30).rewarded_at is None


def test_a_window_closes_by_expiry_or_maturity_and_stays_closed() -> None:
    """A reward that comes within it waits; one that comes after it counts at once."""
    in_window = _assignment("pending", closed=False)
    rewarded = after_step(in_window, "reward", 1.0, 30)
    assert not rewarded.state.closed
    assert rewarded.due_at == 20
    matured = after_step(rewarded, "maturity", 1.0, 31)
    assert (matured.state.closed, matured.due_at) == (True, None)
    expired = after_step(in_window, "expiry", 0.5, 31)
    assert after_step(expired, "reward", 1.0, 32).state.closed


def test_how_a_tell_and_the_sweep_name_their_steps() -> None:
    """What was there before decides."""
    assert [step_of_tell(status) for status in _STATUSES] == ["reward", "correction", "reward", "correction"]
    assert step_when_due(AssignmentState("pending", None, closed=False), 0.5) == ("expiry", 0.5)
    assert step_when_due(AssignmentState("rewarded", 1.0, closed=False), 0.5) == ("maturity", 1.0)


def test_every_step_is_an_event_of_that_family() -> None:
    """The history and the state machine know the same steps."""
    assert {kind for kind, traits in TRAITS.items() if traits.family == "step"} == set(STEPS)
