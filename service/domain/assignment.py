"""One draw and what became of it.

pending ──reward──> rewarded ──correction──> rewarded
│                   ▲  │
expiry              reward └──void──> voided ──correction──> rewarded
▼                   │
expired ───────────────┘          (void works on any status)
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

AssignmentStatus: TypeAlias = Literal["pending", "rewarded", "expired", "voided"]

_DRAW_DIGITS = 11
_TOKEN_DIGITS = 16


class AssignmentState(msgspec.Struct, frozen=True):
    """The part of an assignment that changes and that statistics depend on; the history keeps it before and after."""

    status: AssignmentStatus
    reward: float | None
    closed: bool
    """Its numeric window has closed (always true without one): a reward now counts in the intervals."""


class Assignment(msgspec.Struct, frozen=True):
    """A draw of an arm, for a unit or for nobody in particular."""

    draw: int
    token: int
    """Random. The id is made of draw and token, so it cannot be guessed and ids need no index of their own."""
    sequence: int
    arm: int
    unit: str | None
    reason: str
    epoch: int
    created_at: int
    expires_at: int | None
    expiry_reward: float | None
    """What a numeric expiry counts this draw as while it is silent."""
    state: AssignmentState
    rewarded_at: int | None = None
    idempotency_key: str | None = None

    @property
    def id(self) -> str:
        """What callers know the assignment by."""
        return f"asg_{self.draw:0{_DRAW_DIGITS}x}{self.token:0{_TOKEN_DIGITS}x}"

    @property
    def due_at(self) -> int | None:
        """When the sweep has to look at it: silent ones expire, rewarded ones with a numeric window mature."""
        waits = self.state.status == "pending" or (self.state.status == "rewarded" and not self.state.closed)
        return self.expires_at if waits else None


def parse_assignment_id(text: str) -> tuple[int, int] | None:
    """(draw, token) of an assignment's id, or None if it cannot be one."""
    digits = text.removeprefix("asg_")
    right_length = len(text) == len("asg_") + len(digits) and len(digits) == _DRAW_DIGITS + _TOKEN_DIGITS
    if not right_length or not set(digits) <= set("0123456789abcdef"):
        return None
    return int(digits[:_DRAW_DIGITS], 16), int(digits[_DRAW_DIGITS:], 16)
