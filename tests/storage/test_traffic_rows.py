"""Rows of traffic say what the assignments that they are made of say."""

from __future__ import annotations

import pytest

from service.domain import Assignment, state_when_drawn
from service.storage.tables import assignments
from service.storage.traffic_rows import assignment_of, drawn_row


@pytest.mark.parametrize(("expires_at", "expiry_reward"), [(None, None), (20, None), (20, 0.5)])
def test_the_row_of_a_draw_is_its_state_and_due_time(expires_at: int | None, expiry_reward: float | None) -> None:
    """The row is made without reading the state, for speed; it must be what the state machine says of a draw."""
    drawn = Assignment(1, 2, 3, 0, "u", "track", 1, 10, expires_at, expiry_reward, state_when_drawn(expiry_reward), None, "k")
    row = drawn_row(7, drawn)
    assert assignment_of(row) == drawn
    stored = dict(zip(assignments.columns.keys(), row, strict=True))
    assert (stored["experiment_id"], stored["due_at"], stored["status"]) == (7, drawn.due_at, drawn.state.status)
